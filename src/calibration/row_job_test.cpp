#include "calibration/row_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibration/csv.h"
#include "calibration/sources.h"
#include "model/parameters.h"

namespace sextant::calibration {
namespace {

using testing::HasSubstr;

constexpr const char* kColumns =
    "id,source,model,layers,hidden,heads,kv_heads,ffn,vocab,experts,topk,moe_ffn,seq,gpu,num_gpus,precision,"
    "tp,pp,ep,cp,"
    "dp,vpp,mbs,gbs,recompute,schedule,sequence_parallel,extra,step_time_s,tflops_per_gpu,tokens_per_s_per_"
    "gpu,mfu,"
    "peak_mem_gb,status\n";

MeasuredRow row_of(const std::string& line) {
  return measured_rows(parse_csv(kColumns + line, "t.csv")).at(0);
}

/// A row of VIA-Research/vTrain's ground truth.
MeasuredRow vtrain_row() {
  return row_of(
      "VTRAINM-001,KAIST vTrain,GPT "
      "3.6B,30,3072,32,32,12288,,,,,2048,A100,64,FP16,2,2,,1,16,,8,512,full,1F1B,,x,3.5,,,,,"
      "ran\n");
}

TEST(RowJob, TakesNumbersFromTheRowAndConventionsFromTheSource) {
  const auto result = row_job(vtrain_row());
  const RowJob* made = std::get_if<RowJob>(&result);
  ASSERT_NE(made, nullptr) << std::get<std::string>(result);
  const training::Job& job = made->job;
  EXPECT_EQ(job.software.framework, "vtrain");
  EXPECT_EQ(job.software.attention, layers::AttentionKernel::kLocal);
  EXPECT_EQ(job.model->vocabulary, 51200);
  EXPECT_EQ(job.layout.dp(), 16);
  EXPECT_EQ(job.layout.microbatches(), 4);
  EXPECT_EQ(job.layout.recompute.granularity, parallel::RecomputeGranularity::kFull);
  // 800 Gb/s a node, as the publisher's configurations say.
  EXPECT_EQ(job.cluster->node.nics * job.cluster->node.nic_bandwidth_bytes_per_s, 100e9);
  EXPECT_EQ(job.cluster->nodes, 8);
  EXPECT_THAT(job.warnings, testing::Contains(HasSubstr("attention taken as local")));
}

std::string reason(const MeasuredRow& row) {
  const auto result = row_job(row);
  const auto* text = std::get_if<std::string>(&result);
  return text == nullptr ? "" : *text;
}

TEST(RowJob, SaysWhyARowHasNone) {
  MeasuredRow row = vtrain_row();
  row.dp = 8;
  EXPECT_THAT(reason(row), HasSubstr("does not multiply out: TP 2 · PP 2 · CP 1 · DP 8 on 64 GPUs"));
  row = vtrain_row();
  row.global_batch = 500;
  EXPECT_THAT(reason(row), HasSubstr("global batch 500 is no multiple of 128"));
  row = vtrain_row();
  row.gpu = "TPU-v5p";
  EXPECT_THAT(reason(row), HasSubstr("no accelerator 'TPU-v5p'"));
  row = vtrain_row();
  row.model = "Nemotron-H 56B (Mamba hybrid)";
  EXPECT_THAT(reason(row), HasSubstr("state-space"));
  row = vtrain_row();
  row.extra = "LoRA fine-tune";
  EXPECT_THAT(reason(row), HasSubstr("low-rank"));
  row = vtrain_row();
  row.tp = row.pp = row.dp = std::nullopt;
  EXPECT_THAT(reason(row), HasSubstr("layout is not printed"));
}

TEST(RowJob, InfersLayersFromTheSizeInTheName) {
  // 183 B parameters at hidden size 14,400 and 250,880 tokens are 72.1 layers; 72 is a multiple of 12 stages.
  const MeasuredRow row = row_of(
      "BLOOM-015,BigScience,GPT "
      "183B,,14400,96,96,57600,250880,,,,2048,A100-80GB,384,FP16,8,12,,1,4,,1,2048,full,1F1B,no,"
      "x,100,,,,,ran\n");
  const auto result = row_job(row);
  ASSERT_TRUE(std::holds_alternative<RowJob>(result)) << std::get<std::string>(result);
  EXPECT_EQ(std::get<RowJob>(result).job.model->layers(), 72);
}

TEST(RowJob, BloomNodesHaveFourSlowLinks) {
  const MeasuredRow row = row_of(
      "BLOOM-067,BigScience,GPT "
      "200B,72,14336,112,112,57344,250880,,,,2048,A100-80GB,384,BF16,4,12,,1,8,,2,2048,full,1F1B,"
      "no,x,100,,,,,ran\n");
  const auto result = row_job(row);
  ASSERT_TRUE(std::holds_alternative<RowJob>(result)) << std::get<std::string>(result);
  const cluster::Node& node = std::get<RowJob>(result).job.cluster->node;
  EXPECT_EQ(node.nics * node.nic_bandwidth_bytes_per_s, 50e9);
}

TEST(PrintedFlops, HardwareFlopsAreThoseOfTheSc21Formula) {
  // arXiv 2104.04473 equation 3, a token of the 530B model: 96·L·h²·(1 + S/6h + V/16Lh).
  const MeasuredRow row = row_of(
      "SC21T1-009,Megatron-LM,GPT "
      "530B,105,20480,128,128,81920,51200,,,,2048,A100-80GB,2520,FP16,8,35,,1,9,,1,2520,"
      "full:uniform,1F1B,no,x,,163,,,,ran\n");
  const auto result = row_job(row);
  ASSERT_TRUE(std::holds_alternative<RowJob>(result)) << std::get<std::string>(result);
  const RowJob& made = std::get<RowJob>(result);
  const double l = 105, h = 20480, s = 2048, v = 51200;
  const double expected = 96 * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  EXPECT_NEAR(printed_flops_per_token(made.job, FlopsConvention::kHardware) / expected, 1.0, 1e-3);
}

TEST(SourceProfiles, LaterCasesWin) {
  MeasuredRow row;
  row.id = "MEM-174";
  row.source = "modelscope/ms-swift examples/train/liger/sft.sh";
  row.model = "Qwen2.5-7B";
  row.extra = "ZeRO-3, Liger kernels (fused linear CE)";
  RowSettings settings(row);
  EXPECT_EQ(settings.text("framework", ""), "deepspeed-zero3");
  EXPECT_EQ(settings.text("loss", ""), "chunked");
  row.extra = "ZeRO-3, no Liger: full logits";
  EXPECT_EQ(RowSettings(row).text("loss", ""), "native-fused");
}

TEST(SourceProfiles, UnknownPublishersHaveNone) {
  MeasuredRow row;
  row.id = "MINE-1";
  row.model = "x";
  EXPECT_TRUE(profile_of(row).settings.empty());
}

}  // namespace
}  // namespace sextant::calibration
