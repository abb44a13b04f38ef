// Every workload file of AMD-AGI/Primus: it reads, or it is refused with its file, its key and the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <vector>

#include "backends/knobs.h"
#include "backends/rules.h"
#include "backends/software_fields.h"
#include "backends/workload.h"
#include "backends/workload_test_tools.h"
#include "config/document.h"
#include "model/catalogue.h"
#include "model/parameters.h"

namespace sextant::backends {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

class PrimusFiles : public testing::Test {
 protected:
  void SetUp() override {
    const char* data = std::getenv("SEXTANT_REFERENCE_DATA");
    if (data == nullptr) GTEST_SKIP() << "set SEXTANT_REFERENCE_DATA to the folder that holds data/primus";
    root_ = std::string(data) + "/data/primus";
  }

  std::vector<std::string> files() const {
    std::vector<std::string> paths;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(root_ + "/examples/megatron/configs")) {
      if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
    }
    std::ranges::sort(paths);
    return paths;
  }

  Workload read(const std::string& file, const std::vector<std::string>& settings = {}) const {
    ReadOptions options;
    options.cluster = test_cluster();
    options.use_environment = false;
    for (const std::string& setting : settings) options.settings.push_back(config::parse_assignment(setting));
    return read_workload(root_ + "/examples/megatron/configs/" + file, options);
  }

  std::string root_;
};

/// Why a file may be refused; anything else must read.
std::string expected_refusal(const std::string& file) {
  const auto has = [&](std::string_view word) { return file.find(word) != std::string::npos; };
  if (has("/diffusion/")) return "diffusion";
  if (has("mamba") || has("zebra")) return "state-space";
  if (has("kimi_k3")) return "linear attention";
  if (has("te-precision")) return "no workload";  // a table of precisions that another file names
  if (has("lfm2")) return "LFM";
  if (has("qwen3_5_35B")) return "gated_delta_net";
  if (has("template")) return "place holder";
  return "";
}

TEST_F(PrimusFiles, AllReadOrAreRefusedWithAReason) {
  std::map<std::string, int> outcomes;
  for (const std::string& file : files()) {
    ReadOptions options;
    options.cluster = test_cluster();
    options.use_environment = false;
    const std::string expected = expected_refusal(file);
    try {
      const Workload workload = read_workload(file, options);
      EXPECT_EQ(expected, "") << file;
      const training::Job& job = workload.job;
      EXPECT_GT(model::count_parameters(*job.model).total(), 1'000'000'000) << file;
      EXPECT_EQ(job.backend, "primus") << file;
      EXPECT_GE(job.layout.sequence_tokens, 1024) << file;
      EXPECT_GE(job.layout.global_batch, job.layout.micro_batch) << file;
      ++outcomes["read"];
    } catch (const base::UserError& error) {
      EXPECT_FALSE(error.position().file.empty()) << file << ": " << error.what();
      EXPECT_TRUE(!error.key_path().empty() || expected == "no workload") << file << ": " << error.what();
      const std::string& reason = error.message();
      if (reason.find("LoRA") != std::string::npos) {
        EXPECT_THAT(file, AnyOf(HasSubstr("sft"), HasSubstr("lora")));
        ++outcomes["refused: LoRA"];
        continue;
      }
      ASSERT_NE(expected, "") << file << ": " << error.what();
      EXPECT_THAT(reason, HasSubstr(expected)) << file;
      ++outcomes["refused: " + expected];
    }
  }
  for (const auto& [outcome, count] : outcomes) std::cout << "  " << count << " " << outcome << "\n";
  EXPECT_GE(outcomes["read"], 200);
}

/// Writes the overlay of `job`, reads it back, and expects the same layout and switches.
void expect_overlay_round_trip(const Workload& workload, const training::Job& job, const std::string& root,
                               const TestFolder& folder) {
  std::vector<std::string> notes;
  const auto files = export_files(workload, job, notes);
  ReadOptions options;
  options.cluster = test_cluster();
  options.primus_root = root;
  options.use_environment = false;
  for (const char* name : {"overlay.yaml", "sextant.yaml"}) {
    const training::Job read = read_workload(folder.write(name, files.at(name)), options).job;
    for (const std::string& knob : short_names()) {
      EXPECT_EQ(knob_value(read.layout, knob), knob_value(job.layout, knob)) << name << " " << knob;
    }
    EXPECT_EQ(read.layout, job.layout) << name;
    EXPECT_EQ(config::to_yaml(software_document(read.software, job.software)), "{}\n") << name;
    EXPECT_EQ(model::count_parameters(*read.model).total(), model::count_parameters(*job.model).total())
        << name;
  }
}

TEST_F(PrimusFiles, OverlaysOfAllReadBackUnchangedNormalisedAndReshaped) {
  const TestFolder folder;
  for (const std::string& file : files()) {
    ReadOptions options;
    options.cluster = test_cluster();
    options.use_environment = false;
    Workload workload;
    try {
      workload = read_workload(file, options);
    } catch (const base::UserError&) {
      continue;
    }
    SCOPED_TRACE(file);
    expect_overlay_round_trip(workload, workload.job, root_, folder);
    training::Job reshaped = workload.job;
    normalise(reshaped);
    expect_overlay_round_trip(workload, reshaped, root_, folder);
    reshaped.layout.pp = 2;
    reshaped.layout.vpp = 2;
    reshaped.layout.split = {};
    reshaped.layout.schedule = pipeline::Algorithm::kVHalf;
    reshaped.layout.recompute = {};
    reshaped.layout.precision = cluster::Precision::kBf16;
    reshaped.layout.fp8_recipe = cluster::Fp8Recipe::kNone;
    reshaped.layout.sharding = parallel::Sharding::kDistributedOptimizer;
    expect_overlay_round_trip(workload, reshaped, root_, folder);
    if (HasFailure()) return;
  }
}

TEST_F(PrimusFiles, Mixtral8x22BHasItsPublishedSizeAndLayout) {
  const Workload workload = read("MI355X/mixtral_8x22B_v0.1-BF16-pretrain.yaml");
  const training::Job& job = workload.job;
  // https://huggingface.co/mistralai/Mixtral-8x22B-v0.1: 140,620,634,112 parameters.
  EXPECT_EQ(model::count_parameters(*job.model).total(), 140'620'634'112);
  EXPECT_EQ(job.layout.pp, 4);
  EXPECT_EQ(job.layout.ep, 8);
  EXPECT_EQ(job.layout.etp, 1);
  EXPECT_EQ(job.layout.micro_batch, 2);
  EXPECT_EQ(job.layout.global_batch, 128);
  EXPECT_EQ(job.layout.sequence_tokens, 8192);
  EXPECT_EQ(job.layout.recompute.layers, 0);
  EXPECT_EQ(job.layout.moe_dispatch, parallel::MoeDispatch::kAllToAll);
  EXPECT_EQ(job.layout.loss, parallel::Loss::kFused);
  EXPECT_TRUE(job.layout.forced_balance);
  EXPECT_FALSE(job.software.gradient_accumulation_fusion);
}

TEST_F(PrimusFiles, DeepSeekV3RecomputesTheLayersItNames) {
  const Workload workload = read("MI355X/deepseek_v3-FP8-pretrain.yaml");
  const parallel::Layout& layout = workload.job.layout;
  EXPECT_EQ(layout.pp, 16);
  EXPECT_EQ(layout.vpp, 2) << "32 stages in the layout string";
  EXPECT_EQ(layout.recompute.layer_ids.size(), 21U);
  EXPECT_EQ(layout.precision, cluster::Precision::kFp8);
  EXPECT_EQ(layout.fp8_recipe, cluster::Fp8Recipe::kDelayed);
  EXPECT_TRUE(layout.optimizer.precision_aware);
  EXPECT_EQ(layout.sync_free_stage, 1);
  const model::ParameterCounts counts = model::count_parameters(*workload.job.model);
  // arXiv 2412.19437: 671 B without the prediction module; Hugging Face counts 671,026,419,200.
  EXPECT_EQ(counts.total(), 671'026'419'200);
  EXPECT_GT(counts.mtp, 11'000'000'000);
}

TEST_F(PrimusFiles, ParameterTotalsAgreeWithTheCatalogue) {
  // Presets that describe the released model; others differ on purpose (GPT-OSS with a shared expert, GLM
  // with another tokenizer, DeepSeek-V2-Lite without latent attention).
  const std::pair<const char*, const char*> pairs[] = {
      {"MI355X/mixtral_8x22B_v0.1-BF16-pretrain.yaml", "mixtral-8x22b"},
      {"MI355X/mixtral_8x7B_v0.1-FP8-pretrain.yaml", "mixtral-8x7b"},
      {"MI355X/llama3.1_8B-BF16-pretrain.yaml", "llama-3.1-8b"},
      {"MI325X/llama3.1_70B-BF16-pretrain.yaml", "llama-3.1-70b"},
      {"MI355X/llama3.1_405B-FP8-pretrain.yaml", "llama-3.1-405b"},
      {"MI355X/llama2_7B-BF16-pretrain.yaml", "llama-2-7b"},
      {"MI355X/deepseek_v2-BF16-pretrain.yaml", "deepseek-v2"},
      {"MI355X/deepseek_v3-BF16-pretrain.yaml", "deepseek-v3"},
      {"MI355X/qwen3_235B_A22B-BF16-pretrain.yaml", "qwen3-235b-a22b"},
      {"MI355X/qwen3_30B_A3B-BF16-pretrain.yaml", "qwen3-30b-a3b"},
      {"MI355X/deepseek_v4_flash-BF16-pretrain.yaml", "deepseek-v4-flash"},
      {"MI355X/kimi_k2-BF16-pretrain.yaml", "kimi-k2"},
  };
  for (const auto& [file, name] : pairs) {
    const auto catalogue = model::find_in_catalogue(name);
    ASSERT_TRUE(catalogue.has_value()) << name;
    EXPECT_EQ(model::count_parameters(*read(file).job.model).total(),
              model::count_parameters(catalogue->model).total())
        << file;
  }
}

TEST_F(PrimusFiles, DeepSeekV4HasOneCompressionRatioALayer) {
  const Workload workload = read("MI355X/deepseek_v4_flash-BF16-pretrain.yaml");
  const model::Model& model = *workload.job.model;
  EXPECT_EQ(model.layers(), 43);
  EXPECT_EQ(model.layer(0).attention.compress_ratio, 0);
  EXPECT_EQ(model.layer(2).attention.compress_ratio, 4);
  EXPECT_EQ(model.layer(3).attention.compress_ratio, 128);
  EXPECT_EQ(model.hyper_connections.streams, 4);
  EXPECT_TRUE(model.layer(0).mlp.hash_routing);
  EXPECT_FALSE(model.layer(3).mlp.hash_routing);
}

TEST_F(PrimusFiles, TheGptOssMlperfFileWindowsEveryOtherLayer) {
  const Workload workload = read("MI355X/gpt_oss_20B-FP8-mlperf-pretrain.yaml");
  const model::Model& model = *workload.job.model;
  EXPECT_EQ(model.layer(0).attention.window_tokens, 128);
  EXPECT_EQ(model.layer(1).attention.window_tokens, 0);
  EXPECT_EQ(workload.job.layout.optimizer.gradient_bytes, 2);
  EXPECT_FALSE(workload.job.software.attention_mask_from_loader) << "${…:0} is false";
}

TEST_F(PrimusFiles, MiniMaxInheritsNothingThroughBases) {
  const Workload workload = read("MI355X/minimax_m2.5-BF16-pretrain.yaml");
  EXPECT_THAT(workload.job.warnings, testing::Contains(HasSubstr("`bases`")));
  EXPECT_EQ(workload.job.layout.vpp, 2);
  EXPECT_EQ(workload.job.layout.micro_batch, 3);
}

}  // namespace
}  // namespace sextant::backends
