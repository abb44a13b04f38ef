// Megatron-LM argument lists and launch scripts.
#include "backends/megatron_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/workload.h"
#include "backends/workload_test_tools.h"
#include "config/document.h"
#include "model/parameters.h"

namespace sextant::backends {
namespace {

using testing::Contains;
using testing::HasSubstr;

ReadOptions test_options() {
  ReadOptions options;
  options.cluster = test_cluster();
  options.use_environment = false;
  return options;
}

Workload read(const std::string& text, const ReadOptions& options = test_options()) {
  const TestFolder folder;
  return read_workload(folder.write("arguments.txt", text), options);
}

base::UserError refusal(const std::string& text, const ReadOptions& options = test_options()) {
  return user_error([&] { read(text, options); });
}

// examples/gpt3/train_gpt3_175b_distributed.sh of NVIDIA/Megatron-LM has this form: arrays and a torchrun
// line.
constexpr const char* kScript = R"(#!/bin/bash
# GPT-3 175B
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=1
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
CHECKPOINT_PATH=$1 #<Specify path>
SEQ=2048

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
)
GPT_MODEL_ARGS=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length $SEQ
    --max-position-embeddings ${SEQ}
    --attention-backend auto # Can use (flash/fused/unfused/local)
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 1536
    --lr 6.0e-5
    --clip-grad 1.0
    --fp16
    --padded-vocab-size 51200
)
MODEL_PARALLEL_ARGS=(
	--tensor-model-parallel-size 8
	--pipeline-model-parallel-size 4
)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${GPT_MODEL_ARGS[@]} \
    "${TRAINING_ARGS[@]}" \
    ${MODEL_PARALLEL_ARGS[@]} \
    --save "$CHECKPOINT_PATH"
)";

TEST(MegatronScript, ReadsTheArraysOfTheGpt3Example) {
  const Workload workload = read(kScript);
  EXPECT_EQ(workload.format, "megatron-arguments");
  EXPECT_EQ(workload.job.backend, "megatron-core");
  const model::Model& model = *workload.job.model;
  EXPECT_EQ(model.layers(), 96);
  EXPECT_EQ(model.hidden, 12288);
  EXPECT_EQ(model.layer(0).mlp.ffn, 4 * 12288);
  EXPECT_EQ(model.layer(0).mlp.activation, model::Activation::kGelu);
  EXPECT_TRUE(model.layer(0).attention.qkv_bias);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_EQ(model.norm, model::Norm::kLayerNorm);
  // GPT-3 175B: 12·L·h² (1 + 13/12h + (V+s)/12Lh), arXiv 2104.04473 equation 2, with V = 51,200.
  EXPECT_NEAR(static_cast<double>(model::count_parameters(model).total()), 174.6e9, 0.1e9);
  const parallel::Layout& layout = workload.job.layout;
  EXPECT_EQ(layout.tp, 8);
  EXPECT_EQ(layout.pp, 4);
  EXPECT_EQ(layout.sequence_tokens, 2048);
  EXPECT_EQ(layout.global_batch, 1536);
  EXPECT_EQ(layout.precision, cluster::Precision::kFp16);
  EXPECT_EQ(layout.optimizer.gradient_bytes, 2);
  EXPECT_EQ(layout.sharding, parallel::Sharding::kNone);
}

constexpr const char* kSmall =
    "--num-layers 2 --hidden-size 64 --num-attention-heads 4 \\\n"
    "--seq-length 1024   # tokens\n"
    "--max-position-embeddings=1024\n"
    "--micro-batch-size 1\n--tokenizer-type NullTokenizer\n--vocab-size 1000\n--bf16\n";

TEST(MegatronArgumentList, TakesContinuedLinesCommentsAndEqualsSigns) {
  const Workload workload = read(kSmall);
  EXPECT_EQ(workload.job.model->layers(), 2);
  EXPECT_EQ(workload.job.layout.sequence_tokens, 1024);
  EXPECT_EQ(workload.job.layout.global_batch, 32) << "micro batch × data-parallel ranks when unset";
}

TEST(MegatronArgumentList, CountsTheNullTokenizersExtraTokenByVersion) {
  EXPECT_EQ(read(kSmall).job.model->vocabulary, 1000) << "core_v0.18 dropped the extra token";
  ReadOptions options = test_options();
  options.backend = "megatron-core@0.15";
  EXPECT_EQ(read(kSmall, options).job.model->vocabulary, 1001);
}

TEST(MegatronArgumentList, RefusesUnresolvedVariablesWhereTheyStand) {
  const base::UserError error = refusal(std::string(kSmall) + "--tensor-model-parallel-size $TP\n");
  EXPECT_EQ(error.position().line, 8);
  EXPECT_EQ(error.key_path(), "--tensor-model-parallel-size");
  EXPECT_THAT(error.message(), HasSubstr("$TP"));
  EXPECT_EQ(read("TP=2\n" + std::string(kSmall) + "--tensor-model-parallel-size $TP\n").job.layout.tp, 2);
  EXPECT_EQ(read(std::string(kSmall) + "--tensor-model-parallel-size ${TP:-4}\n").job.layout.tp, 4);
}

TEST(MegatronArgumentList, RefusesUnknownFlagsWithTheNearest) {
  const base::UserError error = refusal(std::string(kSmall) + "--tensor-model-paralel-size 2\n");
  EXPECT_THAT(error.message(), HasSubstr("--tensor-model-parallel-size"));
  EXPECT_EQ(error.position().line, 8);
}

TEST(MegatronArgumentList, RefusesMissingAndSuperfluousValues) {
  EXPECT_THAT(refusal(std::string(kSmall) + "--num-experts\n--swiglu\n").message(), HasSubstr("missing"));
  EXPECT_THAT(refusal(std::string(kSmall) + "--swiglu true\n").message(), HasSubstr("switch"));
  EXPECT_THAT(refusal(std::string(kSmall) + "--num-experts 8 16\n").message(), HasSubstr("one value"));
  EXPECT_THAT(refusal(std::string(kSmall) + "--num-experts eight\n").message(), HasSubstr("integer"));
}

TEST(MegatronArgumentList, RefusesFlagsThatTheNamedVersionDoesNotHave) {
  ReadOptions options = test_options();
  options.backend = "megatron-core@0.12";
  const std::string text = std::string(kSmall) + "--pipeline-model-parallel-layout Ett|L\n";
  EXPECT_THAT(refusal(text, options).message(), HasSubstr("0.13"));
}

TEST(MegatronArgumentList, RefusesScriptsThatDecideWhileTheyRun) {
  const base::UserError error = refusal("if [ -z $X ]; then\n--num-layers 2\nfi\n");
  EXPECT_EQ(error.position().line, 1);
  EXPECT_THAT(error.message(), HasSubstr("plain list"));
}

TEST(MegatronArgumentList, SettingsTakeFlagsKeysAndShortNames) {
  ReadOptions options = test_options();
  options.settings = {config::parse_assignment("tensor-model-parallel-size=2"),
                      config::parse_assignment("global_batch_size=64"), config::parse_assignment("mbs=2"),
                      config::parse_assignment("lr=1e-4")};
  const parallel::Layout layout = read(kSmall, options).job.layout;
  EXPECT_EQ(layout.tp, 2);
  EXPECT_EQ(layout.global_batch, 64);
  EXPECT_EQ(layout.micro_batch, 2);
  options.settings = {config::parse_assignment("use_turbo_deepep=true")};
  EXPECT_THAT(refusal(kSmall, options).message(), HasSubstr("Primus"));
}

TEST(MegatronArgumentList, ReadsMixtureOfExpertsFlags) {
  const Workload workload =
      read(std::string(kSmall) +
           "--num-experts 8\n--moe-layer-freq ([0]*1+[1]*1)\n--moe-router-topk 4\n"
           "--expert-model-parallel-size 8\n--tensor-model-parallel-size 2\n"
           "--moe-token-dispatcher-type flex\n--moe-enable-deepep\n--recompute-granularity "
           "selective\n--recompute-modules core_attn moe_act\n--cp-comm-type a2a\n");
  EXPECT_EQ(workload.job.model->layer(0).mlp.kind, model::MlpKind::kDense);
  EXPECT_EQ(workload.job.model->layer(1).mlp.experts_per_token, 4);
  EXPECT_EQ(workload.job.layout.etp, 2) << "expert tensor parallel size follows the tensor parallel size";
  EXPECT_EQ(workload.job.layout.moe_dispatch, parallel::MoeDispatch::kDeepEp);
  EXPECT_EQ(workload.job.layout.recompute.modules,
            std::uint32_t{parallel::kCoreAttention} | parallel::kMoeActivation);
  EXPECT_TRUE(workload.job.layout.context_all_to_all);
}

TEST(MegatronArgumentList, RefusesMambaHybrids) {
  EXPECT_EQ(refusal(std::string(kSmall) + "--hybrid-override-pattern M-M*\n").key_path(),
            "--hybrid-override-pattern");
}

TEST(MegatronArgumentList, OtherFilesAreToldWhereTheyBelong) {
  const TestFolder folder;
  const auto message = [&](const std::string& text) {
    return user_error([&] { read_workload(folder.write("file.yaml", text), test_options()); }).message();
  };
  EXPECT_THAT(message("hardware_config: {node_size: 8}\n"), HasSubstr("--cluster"));
  EXPECT_THAT(message("architectures: [LlamaForCausalLM]\nhidden_size: 4\n"), HasSubstr("--model"));
  EXPECT_THAT(message("just text\n"), HasSubstr("no workload"));
  EXPECT_THAT(message(""), HasSubstr("no workload"));
  EXPECT_THROW(read_workload("/nowhere/at/all.yaml", test_options()), base::UserError);
}

TEST(MegatronScript, AnArrayOnOneLineIsAnArgumentList) {
  const std::string text =
      "#!/bin/bash\n"
      "ARGS=(--num-layers 8 --hidden-size 1024 --num-attention-heads 8 --seq-length 2048 "
      "--max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64 --tokenizer-type "
      "NullTokenizer --vocab-size 1000)\n"
      "torchrun --nproc_per_node 8 pretrain_gpt.py \"${ARGS[@]}\"\n";
  EXPECT_TRUE(is_argument_list(text));
  EXPECT_EQ(read(text).job.model->layers(), 8);
  EXPECT_FALSE(is_argument_list("# start with pretrain_gpt.py --num-layers 8\nmodel: tiny\n"));
  EXPECT_FALSE(is_argument_list("command: x=(pretrain_gpt.py --num-layers 8)\n"));
}

}  // namespace
}  // namespace sextant::backends
