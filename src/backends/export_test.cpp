// What is written reads back as the same layout and the same switches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>

#include "backends/knobs.h"
#include "backends/software_fields.h"
#include "backends/workload.h"
#include "backends/workload_test_tools.h"
#include "config/document.h"
#include "model/parameters.h"

namespace sextant::backends {
namespace {

using parallel::Layout;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Random = std::mt19937;

template <typename Value>
Value pick(Random& random, std::initializer_list<Value> values) {
  return *(values.begin() + std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random));
}

bool flip(Random& random) { return pick(random, {false, true}); }

parallel::Recompute random_recompute(Random& random, bool primus) {
  using parallel::RecomputeGranularity;
  using parallel::RecomputeMethod;
  parallel::Recompute recompute;
  switch (pick(random, {0, 1, 2, primus ? 3 : 2})) {
    case 1:
      recompute.granularity = RecomputeGranularity::kSelective;
      recompute.modules = pick<std::uint32_t>(
          random,
          {parallel::kCoreAttention, parallel::kMoeActivation | parallel::kLayerNorm, parallel::kMlp});
      break;
    case 2:
      recompute.granularity = RecomputeGranularity::kFull;
      recompute.method = pick(random, {RecomputeMethod::kBlock, RecomputeMethod::kUniform});
      recompute.layers = pick(random, {0, 1, 5, 14});
      recompute.distribute_saved_activations = flip(random);
      break;
    case 3:
      recompute.granularity = RecomputeGranularity::kFull;
      recompute.layer_ids = {0, 3, 17};
      break;
    default:
      break;
  }
  return recompute;
}

void set_random_precision(Random& random, Layout& layout) {
  using cluster::Fp8Recipe;
  using cluster::Precision;
  layout.precision = pick(random, {Precision::kBf16, Precision::kFp16, Precision::kFp32, Precision::kFp8,
                                   Precision::kMxfp8, Precision::kMxfp4, Precision::kNvfp4});
  if (layout.precision == Precision::kFp8) {
    layout.fp8_recipe = pick(random, {Fp8Recipe::kTensorwise, Fp8Recipe::kDelayed, Fp8Recipe::kBlockwise});
  }
  layout.fp8_parameters = flip(random);
  layout.optimizer.precision_aware = layout.precision != Precision::kFp16 && flip(random);
  if (layout.precision != Precision::kFp32)
    layout.optimizer.gradient_bytes = pick<std::uint8_t>(random, {2, 4});
  if (layout.optimizer.precision_aware) {
    layout.optimizer.master_bytes = pick<std::uint8_t>(random, {2, 4});
    layout.optimizer.moment_bytes = pick<std::uint8_t>(random, {1, 2, 4});
  }
}

void set_random_pipeline(Random& random, bool primus, Layout& layout) {
  using pipeline::Algorithm;
  layout.pp = pick(random, {1, 2, 4});
  if (layout.pp == 1) return;
  layout.vpp = pick(random, {1, 2, 4});
  layout.schedule = layout.vpp > 1 ? Algorithm::kInterleaved : Algorithm::kOneForwardOneBackward;
  if (primus && layout.vpp == 1 && flip(random)) layout.schedule = Algorithm::kZeroBubbleH1;
  if (primus && layout.vpp == 2) {
    layout.schedule =
        pick(random, {Algorithm::kInterleaved, Algorithm::kZeroBubbleV, Algorithm::kVHalf, Algorithm::kVMin});
  }
  layout.microbatch_group = pick(random, {0, 4, 8});
  switch (pick(random, {0, 1, 2})) {
    case 1:
      layout.split.first_layers = pick(random, {0, 3});
      layout.split.last_layers = pick(random, {0, 5});
      layout.split.account_for_embedding = flip(random);
      layout.split.account_for_loss = flip(random);
      break;
    case 2: {
      const int stages = layout.pp * layout.vpp;
      layout.split.layout = "Et" + std::string(static_cast<std::size_t>(32 - stages), 't');
      for (int i = 1; i < stages; ++i) layout.split.layout += "|t";
      layout.split.layout += ",L";
      break;
    }
    default:
      break;
  }
}

void set_random_sharding(Random& random, Layout& layout) {
  using parallel::Sharding;
  layout.sharding = pick(random, {Sharding::kNone, Sharding::kDistributedOptimizer, Sharding::kFsdp2,
                                  Sharding::kMegatronFsdpOptimizer, Sharding::kMegatronFsdpGradients,
                                  Sharding::kMegatronFsdpParameters});
  layout.optimizer.kind = pick(random, {parallel::OptimizerKind::kAdam, parallel::OptimizerKind::kMuon});
  if (layout.optimizer.kind == parallel::OptimizerKind::kMuon) {
    layout.sharding = pick(random, {Sharding::kNone, Sharding::kDistributedOptimizer});
  }
  layout.optimizer.instances = pick(random, {1, 2});
  layout.optimizer.offload_fraction = pick(random, {0.0, 1.0, 0.35});
  layout.fsdp_reshard_after_forward = flip(random);
  if (layout.sharding == Sharding::kFsdp2 && layout.dp() * layout.cp >= 4)
    layout.fsdp_shard = pick(random, {0, 2});
  // Primus turns replicas of the shard groups into optimizer instances (hsdp_args_patches.py).
  if (layout.fsdp_shard > 0) layout.optimizer.instances = 1;
}

/// A layout of 32 GPUs that every field of a target can express, legal or not.
Layout random_layout(Random& random, bool primus, bool experts) {
  using parallel::Loss;
  using parallel::MoeDispatch;
  Layout layout;
  layout.world = 32;
  layout.tp = pick(random, {1, 2, 4});
  layout.cp = pick(random, {1, 2});
  set_random_pipeline(random, primus, layout);
  if (experts) {
    layout.ep = pick(random, {1, 2, 8});
    layout.etp = pick(random, {1, 2});
    layout.moe_dispatch = pick(random, {MoeDispatch::kAllToAll, MoeDispatch::kAllGather, MoeDispatch::kDeepEp,
                                        MoeDispatch::kHybridEp});
    if (primus) layout.sync_free_stage = pick(random, {0, 1});
    if (primus && layout.moe_dispatch == MoeDispatch::kDeepEp)
      layout.sync_free_stage = pick(random, {0, 1, 2, 3});
    layout.overlap.moe_dispatch = flip(random);
    layout.forced_balance = flip(random);
  }
  layout.micro_batch = pick(random, {1, 2, 6});
  layout.global_batch = pick<std::int64_t>(random, {64, 384});
  layout.sequence_tokens = pick<std::int64_t>(random, {1024, 8192});
  layout.sequence_parallel = flip(random);
  layout.context_all_to_all = flip(random);
  layout.recompute = random_recompute(random, primus);
  set_random_precision(random, layout);
  set_random_sharding(random, layout);
  layout.overlap.gradient_reduce = flip(random);
  layout.overlap.parameter_gather = flip(random);
  layout.overlap.tensor_parallel = flip(random);
  layout.overlap.point_to_point = flip(random);
  layout.loss =
      pick(random, {Loss::kPlain, Loss::kFused, Loss::kNativeFused, primus ? Loss::kChunked : Loss::kPlain});
  if (layout.loss == Loss::kChunked) layout.loss_chunk_tokens = 4096;
  layout.cuda_graphs = flip(random);
  return layout;
}

/// A dense model's file says nothing of experts: those switches stay as read.
layers::Software random_software(Random& random, bool primus, const Layout& layout, bool experts,
                                 layers::Software software) {
  const layers::Software read = software;
  using layers::AttentionKernel;
  software.transformer_engine = flip(random);
  software.attention = software.transformer_engine
                           ? pick(random, {AttentionKernel::kFused, AttentionKernel::kUnfused})
                           : pick(random, {AttentionKernel::kFused, AttentionKernel::kLocal});
  software.deterministic = flip(random);
  software.grouped_gemm = flip(random);
  software.legacy_grouped_gemm = layout.sync_free_stage < 2 && flip(random);
  software.gradient_accumulation_fusion = flip(random);
  software.attention_mask_from_loader = flip(random);
  software.permute_fusion = flip(random);
  software.fused_activation_with_probabilities = flip(random);
  software.router_fp32 = layout.moe_dispatch == parallel::MoeDispatch::kDeepEp || flip(random);
  software.defer_embedding_weight_gradient = pick(random, {0, -1, 5});
  software.fp32_residual = flip(random);
  software.gradient_reduce_bytes = layout.optimizer.gradient_bytes;
  software.vocabulary_divisor = pick(random, {64, 128, 3232});
  if (primus) {
    software.fused_expert_mlp = flip(random);
    software.fp8_transpose_cache = flip(random);
    software.compiled = flip(random);
    software.expandable_segments = flip(random);
  }
  if (!experts) {
    software.grouped_gemm = read.grouped_gemm;
    software.legacy_grouped_gemm = read.legacy_grouped_gemm;
    software.permute_fusion = read.permute_fusion;
    software.router_fp32 = read.router_fp32;
    software.fused_expert_mlp = read.fused_expert_mlp;
  }
  return software;
}

void expect_same_software(const layers::Software& a, const layers::Software& b) {
  EXPECT_THAT(software_document(a, b).entries, IsEmpty()) << config::to_yaml(software_document(a, b));
}

void expect_same_layout(const Layout& a, const Layout& b) {
  for (const KnobSummary& knob : knob_summaries()) {
    EXPECT_EQ(knob_value(a, std::string(knob.name)), knob_value(b, std::string(knob.name))) << knob.name;
  }
  EXPECT_EQ(a, b);
}

/// Exports `job` from `workload`, reads the file called `name` back and compares.
void expect_round_trip(const Workload& workload, const training::Job& job, const std::string& name,
                       const PrimusFolder& folder) {
  std::vector<std::string> notes;
  const std::map<std::string, std::string> files = export_files(workload, job, notes);
  ASSERT_TRUE(files.contains(name));
  const TestFolder out;
  ReadOptions options = folder.options();
  options.primus_root = folder.root();
  options.backend = job.backend_version.empty() ? job.backend : job.backend + "@" + job.backend_version;
  const std::string path = out.write(name, files.at(name));
  SCOPED_TRACE(files.at(name));
  Workload read;
  ASSERT_NO_THROW(read = read_workload(path, options));
  expect_same_layout(read.job.layout, job.layout);
  expect_same_software(read.job.software, job.software);
  EXPECT_EQ(model::count_parameters(*read.job.model).total(), model::count_parameters(*job.model).total());
  EXPECT_EQ(read.job.model->class_of_layer, job.model->class_of_layer);
  EXPECT_EQ(model::model_flops_per_token(*read.job.model, 4096),
            model::model_flops_per_token(*job.model, 4096));
}

constexpr const char* kDense = "mock_data: true\nfp8: e4m3\n";
constexpr const char* kExperts =
    "mock_data: true\nnum_experts: 8\nmoe_layer_freq: \"([0]*2+[1]*30)\"\nmoe_permute_fusion: true\n"
    "bias_swiglu_fusion: false\nmtp_num_layers: 1\nmoe_shared_expert_intermediate_size: 1024\n"
    "moe_shared_expert_overlap: true\n"
    "recompute_granularity: full\nrecompute_method: block\nrecompute_num_layers: 3\n"
    "tensor_model_parallel_size: ${PRIMUS_TP:2}\n"
    "pipeline_model_parallel_size: 4\nvirtual_pipeline_model_parallel_size: 2\n";

TEST(PrimusOverlay, ReadsBackAsTheSameLayoutAndSwitches) {
  const PrimusFolder folder;
  Random random(1);
  for (const char* overrides : {kDense, kExperts}) {
    const Workload workload = folder.read(overrides);
    const bool experts = workload.job.model->has_experts();
    for (int i = 0; i < 150 && !testing::Test::HasFailure(); ++i) {
      training::Job job = workload.job;
      job.layout = random_layout(random, true, experts);
      job.software = random_software(random, true, job.layout, job.model->has_experts(), job.software);
      expect_round_trip(workload, job, "overlay.yaml", folder);
    }
  }
}

TEST(PrimusOverlay, OfAnUnchangedJobChangesNothingButVariables) {
  const PrimusFolder folder;
  const Workload workload = folder.read(kExperts);
  std::vector<std::string> notes;
  const std::string overlay = export_files(workload, workload.job, notes).at("overlay.yaml");
  EXPECT_THAT(overlay, HasSubstr("tensor_model_parallel_size: 2\n"));
  EXPECT_THAT(overlay, HasSubstr("recompute_num_layers: 3\n"));
  EXPECT_THAT(overlay, HasSubstr("work_group: ${PRIMUS_TEAM:amd}\n"));
  EXPECT_THAT(overlay, Not(HasSubstr("cross_entropy")));
  EXPECT_THAT(overlay, HasSubstr("num_virtual_stages_per_pipeline_rank: 2\n"))
      << "the key that counts at run time is added";
  expect_round_trip(workload, workload.job, "overlay.yaml", folder);
}

TEST(PrimusOverlay, WritesTheKeysThatTheRuntimeChecksWant) {
  // primus/backends/megatron/patches/args/rocm_arg_validation.py
  const PrimusFolder folder;
  const Workload workload = folder.read(kExperts);
  training::Job job = workload.job;
  job.layout.moe_dispatch = parallel::MoeDispatch::kDeepEp;
  job.layout.sync_free_stage = 2;
  job.software.router_fp32 = true;
  job.layout.recompute = {};
  job.layout.schedule = pipeline::Algorithm::kVHalf;
  std::vector<std::string> notes;
  const std::string overlay = export_files(workload, job, notes).at("overlay.yaml");
  for (const char* line :
       {"turbo_sync_free_moe_stage: 2\n", "use_turbo_deepep: true\n", "moe_router_dtype: fp32\n",
        "enable_primus_turbo: true\n", "use_turbo_grouped_gemm: true\n", "moe_shared_expert_overlap: false\n",
        "patch_primus_pipeline: true\n", "pp_algorithm: v-half\n", "recompute_granularity: null\n",
        "recompute_num_layers: 0\n", "num_virtual_stages_per_pipeline_rank: 2\n",
        "virtual_pipeline_model_parallel_size: 2\n"}) {
    EXPECT_THAT(overlay, HasSubstr(line));
  }
  EXPECT_THAT(overlay, Not(HasSubstr("extends")));
  EXPECT_THAT(overlay, Not(HasSubstr("moe_use_legacy_grouped_gemm: true")));
}

TEST(PrimusOverlay, SaysWhatTheTargetCannotExpress) {
  const PrimusFolder folder;
  const Workload workload = folder.read(kExperts);
  training::Job job = workload.job;
  job.layout.expert_skew = 1.5;
  job.layout.schedule = pipeline::Algorithm::kDualPipeV;
  std::vector<std::string> notes;
  export_files(workload, job, notes);
  EXPECT_THAT(notes, Contains(HasSubstr("expert skew")));
  EXPECT_THAT(notes, Contains(HasSubstr("dualpipe-v")));
  notes.clear();
  job.layout.schedule = pipeline::Algorithm::kZeroBubbleH1;
  job.layout.overlap.gradient_reduce = true;
  export_files(workload, job, notes);
  EXPECT_THAT(notes, Contains(HasSubstr("overlap_grad_reduce: false")));
}

TEST(PrimusOverlay, RaisesThePositionsToALongerSequence) {
  const PrimusFolder folder;
  const Workload workload = folder.read("max_position_embeddings: 4096\nseq_length: 4096\n");
  training::Job job = workload.job;
  job.layout.sequence_tokens = 16384;
  std::vector<std::string> notes;
  // validate_args: "max_position_embeddings must be greater than or equal to seq_length".
  EXPECT_THAT(export_files(workload, job, notes).at("overlay.yaml"),
              HasSubstr("max_position_embeddings: 16384\n"));
}

TEST(PrimusExports, NameTheWorkloadsOwnVariablesAndTheUsualOnes) {
  const PrimusFolder folder;
  const Workload workload = folder.read(
      "tensor_model_parallel_size: ${PRIMUS_TP:2}\npipeline_model_parallel_size: 4\n"
      "virtual_pipeline_model_parallel_size: ${PRIMUS_VP:2}\nmicro_batch_size: ${MY_MBS:1}\n");
  training::Job job = workload.job;
  job.layout.tp = 1;
  job.layout.vpp = 4;
  std::vector<std::string> notes;
  const std::string exports = export_files(workload, job, notes).at("exports.sh");
  for (const char* line :
       {"export PRIMUS_TP=1\n", "export PRIMUS_VP=4\n", "export MY_MBS=1\n", "export PRIMUS_PP=4\n",
        "export PRIMUS_EP=1\n", "export PRIMUS_CP=1\n", "export PRIMUS_VPP=4\n", "export PRIMUS_GBS=16\n",
        "export NNODES=4\n", "export GPUS_PER_NODE=8\n"}) {
    EXPECT_THAT(exports, HasSubstr(line));
  }
}

TEST(PrimusOverlay, StartsFromAModelAloneToo) {
  const PrimusFolder folder;
  const TestFolder out;
  const std::string path =
      out.write("short.yaml",
                "model: {hidden: 4096, layers: 32, vocabulary: 32000, attention: {heads: 32, "
                "kv_heads: 8}, mlp: {experts: 8, experts_per_token: 2, expert_ffn: 14336}}\n"
                "backend: primus\nep: 8\npp: 4\nvpp: 2\nmbs: 1\ngbs: 128\nseq: 8192\n");
  const Workload workload = read_workload(path, folder.options());
  expect_round_trip(workload, workload.job, "overlay.yaml", folder);
  expect_round_trip(workload, workload.job, "sextant.yaml", folder);
}

constexpr const char* kArguments = R"(--num-layers 32
--hidden-size 4096
--ffn-hidden-size 14336
--num-attention-heads 32
--group-query-attention
--num-query-groups 8
--max-position-embeddings 8192
--seq-length 8192
--position-embedding-type rope
--normalization RMSNorm
--disable-bias-linear
--swiglu
--untie-embeddings-and-output-weights
--tokenizer-type NullTokenizer
--vocab-size 128000
--micro-batch-size 1
--global-batch-size 128
--bf16
--lr 1e-5
--train-iters 100
)";

TEST(MegatronArguments, ReadBackAsTheSameLayoutAndSwitches) {
  const PrimusFolder folder;
  const TestFolder out;
  Random random(2);
  for (const std::string more : {"",
                                 "--num-experts 8\n--moe-layer-freq "
                                 "([0]*2+[1]*30)\n--moe-grouped-gemm\n--use-distributed-optimizer\n"}) {
    const Workload workload = read_workload(out.write("arguments.txt", kArguments + more), folder.options());
    for (int i = 0; i < 150 && !testing::Test::HasFailure(); ++i) {
      training::Job job = workload.job;
      job.layout = random_layout(random, false, workload.job.model->has_experts());
      job.layout.fsdp_shard = 0;
      if (job.layout.precision == cluster::Precision::kMxfp4)
        job.layout.precision = cluster::Precision::kNvfp4;
      job.software = random_software(random, false, job.layout, job.model->has_experts(), job.software);
      job.software.legacy_grouped_gemm = false;  // the flag went with core_v0.17
      expect_round_trip(workload, job, "arguments.txt", folder);
    }
  }
}

TEST(MegatronArguments, OfAnOlderVersionHoldOnlyItsFlags) {
  const PrimusFolder folder;
  const TestFolder out;
  ReadOptions options = folder.options();
  options.backend = "megatron-core@0.12";
  const Workload workload = read_workload(out.write("arguments.txt", kArguments), options);
  training::Job job = workload.job;
  job.layout.pp = 4;
  job.layout.split.layout = "Ett*7|t*8|t*8|t*8L";
  job.layout.cuda_graphs = true;
  std::vector<std::string> notes;
  const std::string text = export_files(workload, job, notes).at("arguments.txt");
  EXPECT_THAT(text, Not(HasSubstr("--pipeline-model-parallel-layout"))) << "came with core_v0.13";
  EXPECT_THAT(notes, Contains(HasSubstr("--pipeline-model-parallel-layout")));
  EXPECT_THAT(text, HasSubstr("--enable-cuda-graph"));
  EXPECT_THAT(text, HasSubstr("--lr 1e-5"));
  EXPECT_THAT(text, HasSubstr("--vocab-size 128000"));
}

TEST(MegatronArguments, HoldThatBackendsSpellingOfUnevenStages) {
  // THUDM/slime pull request 1486.
  const PrimusFolder folder;
  const TestFolder out;
  const Workload workload = read_workload(
      out.write("arguments.txt", std::string(kArguments) + "--decoder-first-pipeline-num-layers 4\n"),
      folder.options());
  std::vector<std::string> notes;
  const std::string text = export_files(workload, workload.job, notes).at("arguments.txt");
  EXPECT_THAT(text, HasSubstr("--decoder-first-pipeline-num-layers 4"));
  EXPECT_THAT(text, Not(HasSubstr("num-layers-in-first")));
  EXPECT_THAT(notes, IsEmpty());
}

TEST(SextantYaml, ReadsBackAsTheSameJob) {
  const PrimusFolder folder;
  Random random(3);
  const Workload workload = folder.read(kExperts);
  for (int i = 0; i < 200 && !testing::Test::HasFailure(); ++i) {
    training::Job job = workload.job;
    job.layout = random_layout(random, true, true);
    job.layout.expert_skew = pick(random, {1.0, 1.25, 3.0});
    job.layout.activation_offload_fraction = pick(random, {0.0, 0.3});
    job.software = random_software(random, true, job.layout, job.model->has_experts(), job.software);
    job.software.flops_count_recompute = flip(random);
    expect_round_trip(workload, job, "sextant.yaml", folder);
  }
}

Workload small_model(const std::string& backend, const std::string& mlp) {
  const TestFolder folder;
  ReadOptions options;
  options.cluster = test_cluster();
  options.backend = backend;
  return workload_from_model(
      folder.write("small.yaml",
                   "hidden: 64\nlayers: 4\nvocabulary: 1000\nattention: {heads: 4}\nmlp: {" + mlp + "}\n"),
      options);
}

TEST(Exports, OfDenseModelsHoldNoFlagsOfExperts) {
  for (const std::string backend : {"megatron-core", "primus"}) {
    const std::string file = backend == "primus" ? "overlay.yaml" : "arguments.txt";
    const std::string flag = backend == "primus" ? "moe_grouped_gemm" : "--moe-grouped-gemm";
    std::vector<std::string> notes;
    const Workload dense = small_model(backend, "ffn: 256");
    const std::string text = export_files(dense, dense.job, notes).at(file);
    EXPECT_THAT(text, Not(HasSubstr("moe"))) << text;
    const Workload experts = small_model(backend, "experts: 8, experts_per_token: 2, expert_ffn: 32");
    EXPECT_THAT(export_files(experts, experts.job, notes).at(file), HasSubstr(flag));
  }
}

TEST(Exports, OfAModelAloneNameTheNumericsThatAreMissing) {
  for (const auto& [backend, base] :
       {std::pair("megatron-core", "--rotary-base"), {"primus", "rotary_base"}}) {
    std::vector<std::string> notes;
    const Workload workload = small_model(backend, "ffn: 256");
    export_files(workload, workload.job, notes);
    EXPECT_THAT(notes, Contains(HasSubstr(base)));
  }
  const PrimusFolder folder;
  const TestFolder out;
  const Workload list = read_workload(out.write("arguments.txt", kArguments), folder.options());
  std::vector<std::string> notes;
  export_files(list, list.job, notes);
  EXPECT_THAT(notes, Not(Contains(HasSubstr("rotary"))));
}

}  // namespace
}  // namespace sextant::backends
