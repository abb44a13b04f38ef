// Primus workloads: keys of AMD-AGI/Primus at commit fd1eeabb against what its runtime does with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "backends/workload.h"
#include "backends/workload_test_tools.h"
#include "base/error.h"
#include "config/document.h"
#include "model/parameters.h"

namespace sextant::backends {
namespace {

using pipeline::Algorithm;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(PrimusWorkload, OverridesWinOverPresetsAndReachTheModel) {
  const PrimusFolder folder;
  const Workload workload = folder.read("num_layers: 8\nmicro_batch_size: 2\nglobal_batch_size: 64\n");
  EXPECT_EQ(workload.job.model->layers(), 8) << "Primus's tuning agent reads the preset's 32 here";
  EXPECT_EQ(workload.job.model->hidden, 4096);
  EXPECT_EQ(workload.job.layout.micro_batch, 2);
  EXPECT_EQ(workload.job.layout.global_batch, 64);
  EXPECT_EQ(workload.job.layout.sequence_tokens, 1024) << "pre_trainer.yaml";
  EXPECT_EQ(workload.job.layout.world, 32);
  EXPECT_EQ(workload.job.backend, "primus");
}

TEST(PrimusWorkload, SettingsWinOverTheFile) {
  const PrimusFolder folder;
  ReadOptions options = folder.options();
  options.settings = {config::parse_assignment("tensor_model_parallel_size=4"),
                      config::parse_assignment("mbs=3"), config::parse_assignment("num_nodes=4"),
                      config::parse_assignment("lr=1e-5")};
  const Workload workload = read_workload(folder.write("tensor_model_parallel_size: 2\n"), options);
  EXPECT_EQ(workload.job.layout.tp, 4);
  EXPECT_EQ(workload.job.layout.micro_batch, 3);
}

TEST(PrimusWorkload, ShortNamesBringAlongWhatTheFrameworkDerives) {
  const PrimusFolder folder;
  const auto read = [&](const std::string& overrides, const std::vector<std::string>& settings) {
    ReadOptions options = folder.options();
    for (const std::string& setting : settings) options.settings.push_back(config::parse_assignment(setting));
    return read_workload(folder.write(overrides), options).job;
  };
  EXPECT_EQ(read("num_experts: 8\n", {"tp=2"}).layout.etp, 2)
      << "an unset expert tensor parallel size follows";
  EXPECT_EQ(read("", {"pp=4", "vpp=2"}).layout.schedule, Algorithm::kInterleaved);
  const std::string eight_stages =
      "pipeline_model_parallel_size: 4\npipeline_model_parallel_layout: "
      "\"Et*4|(t*4|)*6t*4,L\"\n";
  EXPECT_EQ(read(eight_stages, {"pp=8"}).layout.vpp, 1) << "8 stages on 8 ranks";
  EXPECT_TRUE(read("num_experts: 8\n", {"dispatch=deepep"}).software.router_fp32)
      << "DeepEP by name sets what it needs";
  EXPECT_FALSE(read("num_experts: 8\nuse_turbo_deepep: true\n", {}).software.router_fp32)
      << "a file is taken as it is";
}

TEST(PrimusWorkload, UnknownSettingsNameTheNearestKeys) {
  const PrimusFolder folder;
  ReadOptions options = folder.options();
  options.settings = {config::parse_assignment("tensor_model_paralel_size=4")};
  const base::UserError error = user_error([&] { read_workload(folder.write(""), options); });
  EXPECT_THAT(error.message(), HasSubstr("tensor_model_parallel_size"));
  EXPECT_EQ(error.key_path(), "tensor_model_paralel_size");
  options.settings = {config::parse_assignment("num_node=4")};
  EXPECT_THAT(user_error([&] { read_workload(folder.write(""), options); }).message(),
              HasSubstr("num_nodes"));
}

TEST(PrimusWorkload, FullRecomputationOfNoLayersRecomputesNothing) {
  const PrimusFolder folder;
  const parallel::Recompute recompute =
      folder.read("recompute_granularity: full\nrecompute_method: block\nrecompute_num_layers: 0\n")
          .job.layout.recompute;
  EXPECT_EQ(recompute.granularity, parallel::RecomputeGranularity::kFull);
  EXPECT_EQ(recompute.layers, 0);
  EXPECT_TRUE(recompute.layer_ids.empty());
}

TEST(PrimusWorkload, LayerIdsAreReadFromTextAndFromLists) {
  const PrimusFolder folder;
  for (const std::string ids : {"\"0,3,31,3\"", "[31, 3, 0]"}) {
    const parallel::Recompute recompute =
        folder.read("recompute_granularity: full\nrecompute_layer_ids: " + ids + "\n").job.layout.recompute;
    EXPECT_EQ(recompute.layer_ids, (std::vector<int>{0, 3, 31}));
  }
  const base::UserError error =
      user_error([&] { folder.read("recompute_granularity: full\nrecompute_layer_ids: \"32\"\n"); });
  EXPECT_THAT(error.message(), HasSubstr("0 to 31"));
}

TEST(PrimusWorkload, SelectiveRecomputationWithoutModulesMeansTheCoreAttention) {
  const PrimusFolder folder;
  EXPECT_EQ(folder.read("recompute_granularity: selective\n").job.layout.recompute.modules,
            std::uint32_t{parallel::kCoreAttention});
  EXPECT_EQ(folder.read("recompute_granularity: selective\nrecompute_modules: [moe_act, layernorm]\n")
                .job.layout.recompute.modules,
            std::uint32_t{parallel::kMoeActivation} | parallel::kLayerNorm);
}

TEST(PrimusWorkload, DistributedOptimizerIsOnByPreset) {
  const PrimusFolder folder;
  EXPECT_EQ(folder.read("").job.layout.sharding, parallel::Sharding::kDistributedOptimizer);
  EXPECT_EQ(folder.read("use_distributed_optimizer: false\n").job.layout.sharding, parallel::Sharding::kNone);
  EXPECT_EQ(folder.read("use_distributed_optimizer: false\nuse_torch_fsdp2: true\n").job.layout.sharding,
            parallel::Sharding::kFsdp2);
  const Workload both = folder.read("use_torch_fsdp2: true\n");
  EXPECT_EQ(both.job.layout.sharding, parallel::Sharding::kFsdp2);
  EXPECT_THAT(both.job.warnings, Contains(HasSubstr("use_distributed_optimizer")));
}

TEST(PrimusWorkload, VirtualStagesComeFromAnyOfTheirSpellings) {
  const PrimusFolder folder;
  const auto chunks = [&](const std::string& keys) {
    return folder.read("pipeline_model_parallel_size: 4\n" + keys).job.layout.vpp;
  };
  EXPECT_EQ(chunks("num_virtual_stages_per_pipeline_rank: 2\n"), 2);
  EXPECT_EQ(chunks("virtual_pipeline_model_parallel_size: 2\n"), 2);
  EXPECT_EQ(chunks("num_layers_per_virtual_pipeline_stage: 2\n"), 4) << "32 layers / 4 stages / 2 layers";
  EXPECT_EQ(chunks("pipeline_model_parallel_layout: \"Et*4|(t*4|)*6t*4,L\"\n"), 2) << "8 stages on 4 ranks";
  EXPECT_EQ(chunks(""), 1);
}

TEST(PrimusWorkload, SchedulesComeFromThePatchFlags) {
  const PrimusFolder folder;
  const auto schedule = [&](const std::string& keys) {
    return folder.read("pipeline_model_parallel_size: 4\n" + keys).job.layout.schedule;
  };
  const std::string two = "num_virtual_stages_per_pipeline_rank: 2\n";
  EXPECT_EQ(schedule(""), Algorithm::kOneForwardOneBackward);
  EXPECT_EQ(schedule(two), Algorithm::kInterleaved);
  EXPECT_EQ(schedule("patch_primus_pipeline: true\npp_algorithm: zero-bubble\n"), Algorithm::kZeroBubbleH1);
  EXPECT_EQ(schedule(two + "patch_primus_pipeline: true\npp_algorithm: zbv-formatted\n"),
            Algorithm::kZeroBubbleV);
  EXPECT_EQ(schedule(two + "patch_primus_pipeline: true\npp_algorithm: v-half\n"), Algorithm::kVHalf);
  EXPECT_EQ(schedule(two + "patch_primus_pipeline: true\npp_algorithm: v-min\n"), Algorithm::kVMin);
  EXPECT_EQ(schedule(two + "patch_primus_pipeline: true\n"), Algorithm::kInterleaved);
  // zerobubble/README.md of Primus.
  EXPECT_EQ(schedule("patch_zero_bubble: true\n"), Algorithm::kZeroBubbleH1);
  EXPECT_EQ(schedule(two + "patch_zero_bubble: true\nzero_bubble_v_schedule: true\n"
                           "zero_bubble_v_schedule_mem_setup: zb\n"),
            Algorithm::kZeroBubbleV);
  EXPECT_EQ(schedule(two + "patch_zero_bubble: true\nzero_bubble_v_schedule: true\n"), Algorithm::kVHalf);
  EXPECT_EQ(schedule("patch_zero_bubble: true\nzero_bubble_max_pending_backward: 8\n"),
            Algorithm::kZeroBubbleH2);
}

TEST(PrimusWorkload, AnAlgorithmWithoutItsPatchFlagIsTakenAndTheUserIsTold) {
  const PrimusFolder folder;
  const Workload workload = folder.read("pipeline_model_parallel_size: 4\npp_algorithm: zero-bubble\n");
  EXPECT_EQ(workload.job.layout.schedule, Algorithm::kZeroBubbleH1);
  EXPECT_THAT(workload.job.warnings, Contains(HasSubstr("patch_primus_pipeline")));
}

TEST(PrimusWorkload, LatentAttentionNeedsItsSwitchAndNotOnlyItsRanks) {
  const PrimusFolder folder;
  // language_model.yaml gives every model kv_lora_rank: 32 and friends.
  EXPECT_EQ(folder.read("").job.model->layer(0).attention.kind, model::AttentionKind::kGroupedQuery);
  const model::Attention latent =
      folder.read("multi_latent_attention: true\nq_lora_rank: 1536\nkv_lora_rank: 512\n")
          .job.model->layer(0)
          .attention;
  EXPECT_EQ(latent.kind, model::AttentionKind::kMultiLatent);
  EXPECT_EQ(latent.query_latent_rank, 1536);
  EXPECT_EQ(latent.kv_latent_rank, 512);
  EXPECT_EQ(latent.rotary_head_dim, 64);
}

TEST(PrimusWorkload, PrecisionFollowsFormatAndRecipe) {
  const PrimusFolder folder;
  const auto layout = [&](const std::string& keys) { return folder.read(keys).job.layout; };
  EXPECT_EQ(layout("").precision, cluster::Precision::kBf16);
  EXPECT_EQ(layout("fp8: hybrid\n").precision, cluster::Precision::kFp8);
  EXPECT_EQ(layout("fp8: hybrid\n").fp8_recipe, cluster::Fp8Recipe::kDelayed) << "trainer_base.yaml";
  EXPECT_EQ(layout("fp8: e4m3\nfp8_recipe: tensorwise\n").fp8_recipe, cluster::Fp8Recipe::kTensorwise);
  EXPECT_EQ(layout("fp8: e4m3\nfp8_recipe: mxfp8\n").precision, cluster::Precision::kMxfp8);
  EXPECT_EQ(layout("fp4: e2m1\nfp4_recipe: mxfp4\n").precision, cluster::Precision::kMxfp4);
  EXPECT_EQ(layout("fp8: none\n").precision, cluster::Precision::kBf16)
      << "as Primus's tuning guide writes it";
  EXPECT_THROW(layout("fp8: e5m2\n"), base::UserError);
}

TEST(PrimusWorkload, TheOptimizersBytesFollowItsTypes) {
  const PrimusFolder folder;
  const parallel::Optimizer plain = folder.read("").job.layout.optimizer;
  EXPECT_FALSE(plain.precision_aware);
  EXPECT_EQ(plain.gradient_bytes, 4) << "validate_args turns on fp32 accumulation for bf16";
  const Workload aware = folder.read(
      "use_precision_aware_optimizer: true\nmain_grads_dtype: bf16\nexp_avg_dtype: bf16\nexp_avg_sq_dtype: "
      "bf16\n");
  EXPECT_TRUE(aware.job.layout.optimizer.precision_aware);
  EXPECT_EQ(aware.job.layout.optimizer.gradient_bytes, 2);
  EXPECT_EQ(aware.job.layout.optimizer.moment_bytes, 2);
  EXPECT_EQ(aware.job.layout.optimizer.master_bytes, 4);
  EXPECT_EQ(aware.job.software.gradient_reduce_bytes, 2);
  EXPECT_EQ(folder.read("grad_reduce_in_bf16: true\n").job.layout.optimizer.gradient_bytes, 2);
}

TEST(PrimusWorkload, ExpertDispatchFollowsTheTurboSwitches) {
  const PrimusFolder folder;
  const std::string moe = "num_experts: 8\nmoe_token_dispatcher_type: alltoall\nenable_primus_turbo: true\n";
  EXPECT_EQ(folder.read(moe).job.layout.moe_dispatch, parallel::MoeDispatch::kAllToAll);
  EXPECT_EQ(folder.read(moe + "use_turbo_deepep: true\n").job.layout.moe_dispatch,
            parallel::MoeDispatch::kDeepEp);
  const parallel::Layout stage2 = folder.read(moe + "turbo_sync_free_moe_stage: 2\n").job.layout;
  EXPECT_EQ(stage2.moe_dispatch, parallel::MoeDispatch::kDeepEp) << "stage 2 turns DeepEP on";
  EXPECT_EQ(stage2.sync_free_stage, 2);
  EXPECT_THROW(folder.read(moe + "turbo_sync_free_moe_stage: 4\n"), base::UserError);
  EXPECT_THAT(folder.read(moe + "sync_free_stage: 2\n").job.warnings,
              Contains(HasSubstr("turbo_sync_free_moe_stage")));
}

TEST(PrimusWorkload, SinkAttentionWindowsEvenLayersOnly) {
  const PrimusFolder folder;
  const Workload workload = folder.read("use_sink_attention: true\nsink_sliding_window: 128\n");
  EXPECT_TRUE(workload.job.model->layer(0).attention.sinks);
  EXPECT_EQ(workload.job.model->layer(0).attention.window_tokens, 128);
  EXPECT_EQ(workload.job.model->layer(1).attention.window_tokens, 0);
}

TEST(PrimusWorkload, VariablesTakeTheEnvironmentOrTheirDefault) {
  const PrimusFolder folder;
  const std::string path = folder.write("tensor_model_parallel_size: ${SEXTANT_TEST_TP:2}\n");
  EXPECT_EQ(read_workload(path, folder.options()).job.layout.tp, 2);
  ASSERT_EQ(setenv("SEXTANT_TEST_TP", "4", 1), 0);
  EXPECT_EQ(read_workload(path, folder.options()).job.layout.tp, 4);
  ReadOptions options = folder.options();
  options.use_environment = false;
  EXPECT_EQ(read_workload(path, options).job.layout.tp, 2);
  ASSERT_EQ(unsetenv("SEXTANT_TEST_TP"), 0);
}

TEST(PrimusWorkload, WarnsWherePyYamlReadsAnotherType) {
  const PrimusFolder folder;
  const std::vector<std::string> warnings =
      folder.read("lr: 1e-5\nmin_lr: 1.0e-5\nsequence_parallel: on\nattention_backend: auto\n").job.warnings;
  EXPECT_THAT(warnings, Contains(HasSubstr("lr: Primus's loader takes 1e-5 for text")));
  EXPECT_THAT(warnings, Not(Contains(HasSubstr("min_lr"))));
  EXPECT_THAT(warnings, Not(Contains(HasSubstr("sequence_parallel"))));
}

TEST(PrimusWorkload, TypedKeysDecideWhatAScalarMeans) {
  const PrimusFolder folder;
  EXPECT_TRUE(folder.read("sequence_parallel: yes\n").job.layout.sequence_parallel);
  EXPECT_TRUE(folder.read("sequence_parallel: 1\n").job.layout.sequence_parallel);
  const auto message = [&](const std::string& keys) { return user_error([&] { folder.read(keys); }); };
  EXPECT_THAT(message("micro_batch_size: true\n").message(), HasSubstr("integer"));
  EXPECT_THAT(message("num_layers: 012\n").message(), HasSubstr("leading zero"));
  EXPECT_EQ(message("micro_batch_size: true\n").key_path(), "modules.pre_trainer.overrides.micro_batch_size");
  EXPECT_GT(message("micro_batch_size: true\n").position().line, 0);
}

TEST(PrimusWorkload, TheSameKeyTwiceIsAnErrorWithItsLine) {
  const PrimusFolder folder;
  const base::UserError error = user_error([&] { folder.read("seq_length: 2048\nseq_length: 8192\n"); });
  EXPECT_THAT(error.what(), HasSubstr("seq_length"));
  EXPECT_GT(error.position().line, 0);
}

TEST(PrimusWorkload, AnUnknownTokenizerIsRefusedAndNeverGuessed) {
  const PrimusFolder folder;
  const base::UserError error =
      user_error([&] { folder.read("vocab_size: null\ntokenizer_model: acme/none\n"); });
  EXPECT_THAT(error.message(), HasSubstr("set vocab_size"));
}

TEST(PrimusWorkload, UnsupportedModelsAreNamedAtTheirKey) {
  const PrimusFolder folder;
  const auto key_of = [&](const std::string& keys) {
    return user_error([&] { folder.read(keys); }).key_path();
  };
  EXPECT_THAT(key_of("model_type: mamba\n"), HasSubstr("model_type"));
  EXPECT_THAT(key_of("hybrid_override_pattern: \"M-M*\"\n"), HasSubstr("hybrid_override_pattern"));
  EXPECT_THAT(key_of("experimental_attention_variant: gated_delta_net\n"),
              HasSubstr("experimental_attention"));
  EXPECT_THAT(key_of("lfm_layer_types: [conv, full_attention]\n"), HasSubstr("lfm_layer_types"));
  EXPECT_THAT(key_of("lora: {enabled: true}\n"), HasSubstr("lora.enabled"));
}

TEST(PrimusWorkload, OtherFrameworksAndPlaceHoldersAreRefused) {
  const PrimusFolder folder;
  const auto read_module = [&](const std::string& module) {
    return user_error([&] { read_workload(folder.write_module(module), folder.options()); }).message();
  };
  EXPECT_THAT(
      read_module("    framework: torchtitan\n    config: pre_trainer.yaml\n    model: test_model.yaml\n"),
      HasSubstr("torchtitan"));
  EXPECT_THAT(read_module("    framework: megatron\n    config: pre_trainer.yaml\n    model: <YOUR_MODEL>\n"),
              HasSubstr("place holder"));
  EXPECT_THAT(
      read_module("    framework: megatron\n    config: pre_trainer.yaml\n    model: test_modl.yaml\n"),
      HasSubstr("test_model"));
  EXPECT_THAT(
      read_module(
          "    framework: megatron\n    config: pre_trainer.yaml\n    model: diffusion/flux_12b.yaml\n"),
      HasSubstr("diffusion"));
}

TEST(PrimusWorkload, WithoutARootTheUserIsToldHowToNameOne) {
  const PrimusFolder folder;
  const std::string elsewhere = folder.write_elsewhere("");
  EXPECT_THAT(user_error([&] { read_workload(elsewhere, folder.options()); }).message(),
              HasSubstr("--primus-root"));
  ReadOptions options;
  options.cluster = test_cluster();
  options.primus_root = folder.root();
  EXPECT_EQ(read_workload(elsewhere, options).job.model->layers(), 32);
}

TEST(PrimusWorkload, MegatronBridgesSpellingOfUnevenStagesIsUnderstood) {
  const PrimusFolder folder;
  // THUDM/slime pull request 1486: one backend's spelling was dropped on the way to the other.
  const Workload workload =
      folder.read("pipeline_model_parallel_size: 4\nnum_layers_in_first_pipeline_stage: 5\n");
  EXPECT_EQ(workload.job.layout.split.first_layers, 5);
  EXPECT_THAT(workload.job.warnings, Contains(HasSubstr("decoder_first_pipeline_num_layers")));
}

}  // namespace
}  // namespace sextant::backends
