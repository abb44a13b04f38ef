// One legal and one illegal example for every rule of every backend and version, and what holds for all
// rules.

#include "backends/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "backends/rule_entry.h"
#include "backends/test_jobs.h"

namespace sextant::backends {
namespace {

using parallel::MoeDispatch;
using parallel::RecomputeGranularity;
using parallel::RecomputeMethod;
using parallel::Sharding;
using pipeline::Algorithm;

using Change = std::function<void(Job&)>;

/// A job that breaks the rule, and the same job with the fault removed.
struct Example {
  std::string_view rule;
  Job (*base)();
  Change illegal;
  Change legal;
  unsigned backends = kEveryBackend;
  int since = 0;
  int before = 1000;
};

Job dense() { return testing::dense_job(); }
Job experts() { return testing::expert_job(); }

void full(Job& job, RecomputeMethod method, int layers) {
  job.layout.recompute.granularity = RecomputeGranularity::kFull;
  job.layout.recompute.method = method;
  job.layout.recompute.layers = layers;
}
void selective(Job& job, std::uint32_t modules) {
  job.layout.recompute.granularity = RecomputeGranularity::kSelective;
  job.layout.recompute.modules = modules;
}
void fsdp2(Job& job) {
  job.layout.sharding = Sharding::kFsdp2;
  job.software.gradient_accumulation_fusion = false;
}
void interleaved(Job& job, int pp, int vpp) {
  job.layout.pp = pp;
  job.layout.vpp = vpp;
  job.layout.schedule = Algorithm::kInterleaved;
  job.layout.overlap.point_to_point = true;
}
void with_mtp(Job& job, int depths) {
  testing::change_model(job, [&](model::Model& m) { m.mtp.depths = depths; });
}
void tied(Job& job) {
  testing::change_model(job, [](model::Model& m) { m.tied_embeddings = true; });
}

const std::vector<Example>& parallel_examples() {
  static const std::vector<Example> list = {
      {"degrees-positive", dense, [](Job& j) { j.layout.tp = 0; }, [](Job& j) { j.layout.tp = 1; }},
      {"world-by-cluster", dense, [](Job& j) { j.layout.world = 72; }, [](Job&) {}},
      {"world-by-model-parallel", dense, [](Job& j) { j.layout.pp = 3; }, [](Job& j) { j.layout.pp = 4; }},
      {"world-by-expert-parallel", experts, [](Job& j) { j.layout.etp = 3; },
       [](Job& j) { j.layout.etp = 2; }},
      {"heads-by-tp", dense, [](Job& j) { j.layout.tp = 3; }, [](Job& j) { j.layout.tp = 4; }},
      {"kv-heads-by-tp", dense, [](Job& j) { j.layout.tp = 16; }, [](Job& j) { j.layout.tp = 8; },
       kMegatronFamily, 0, 16},
      {"kv-heads-by-tp", [] { return testing::job_of(testing::dense_model(48, 48, 6), 64); },
       [](Job& j) { j.layout.tp = 4; }, [](Job& j) { j.layout.tp = 12; }, kMegatronFamily, 16},
      {"kv-heads-by-tp", dense, [](Job& j) { j.layout.tp = 16; }, [](Job& j) { j.layout.tp = 8; },
       kTorchtitanOnly},
      {"ffn-by-tp", [] { return testing::job_of(testing::dense_model(32, 32, 8, 1000), 64); },
       [](Job& j) { j.layout.tp = 16; }, [](Job& j) { j.layout.tp = 8; }},
      {"sequence-by-cp", dense, [](Job& j) { j.layout.cp = 4, j.layout.sequence_tokens = 4100; },
       [](Job& j) { j.layout.cp = 4, j.layout.sequence_tokens = 4104; }},
      {"sequence-by-tp", dense,
       [](Job& j) { j.layout.tp = 8, j.layout.sequence_parallel = true, j.layout.sequence_tokens = 4100; },
       [](Job& j) { j.layout.tp = 8, j.layout.sequence_parallel = true, j.layout.sequence_tokens = 4096; }},
      {"heads-by-cp", dense,
       [](Job& j) { j.layout.tp = 4, j.layout.cp = 4, j.layout.context_all_to_all = true; },
       [](Job& j) { j.layout.tp = 4, j.layout.cp = 2, j.layout.context_all_to_all = true; }},
      {"window-by-ring-cp",
       [] {
         Job job = dense();
         testing::change_model(job, [](model::Model& m) { m.classes[0].attention.window_tokens = 128; });
         return job;
       },
       [](Job& j) { j.layout.cp = 2; }, [](Job& j) { j.layout.cp = 2, j.layout.context_all_to_all = true; }},
      {"sequence-by-positions",
       [] {
         Job job = dense();
         testing::change_model(job, [](model::Model& m) {
           m.positions = model::Positions::kLearned;
           m.maximum_positions = 2048;
         });
         return job;
       },
       [](Job& j) { j.layout.sequence_tokens = 4096; }, [](Job& j) { j.layout.sequence_tokens = 2048; }},
  };
  return list;
}

const std::vector<Example>& pipeline_examples() {
  static const std::vector<Example> list = {
      {"schedule-launchable", dense, [](Job& j) { j.layout.schedule = Algorithm::kZeroBubbleH2; },
       [](Job& j) { j.layout.schedule = Algorithm::kOneForwardOneBackward; }},
      {"schedule-chunks", dense,
       [](Job& j) { j.layout.pp = 4, j.layout.vpp = 3, j.layout.schedule = Algorithm::kVHalf; },
       [](Job& j) { j.layout.pp = 4, j.layout.vpp = 2, j.layout.schedule = Algorithm::kVHalf; }},
      {"schedule-shape", dense, [](Job& j) { interleaved(j, 4, 2), j.layout.global_batch = 16 * 3; },
       [](Job& j) { interleaved(j, 4, 2), j.layout.global_batch = 16 * 4; }},
      {"vpp-by-pp", dense, [](Job& j) { interleaved(j, 1, 2); }, [](Job& j) { interleaved(j, 2, 2); }},
      {"layers-by-stages", dense, [](Job& j) { j.layout.pp = 4, j.layout.split.first_layers = 9; },
       [](Job& j) { j.layout.pp = 4, j.layout.split.first_layers = 8; }},
      {"split-exclusive", dense,
       [](Job& j) {
         j.layout.pp = 4, j.layout.split.first_layers = 8, j.layout.split.account_for_loss = true;
       },
       [](Job& j) { j.layout.pp = 4, j.layout.split.first_layers = 8; }},
      {"layout-string-version", dense, [](Job& j) { j.layout.pp = 2, j.layout.split.layout = "Et*16|t*16L"; },
       [](Job& j) { j.layout.pp = 2; }},
      {"mtp-placement", dense,
       [](Job& j) { with_mtp(j, 1), j.layout.pp = 2, j.layout.split.layout = "Et*16|t*16mL"; },
       [](Job& j) { with_mtp(j, 1), j.layout.pp = 2; }, kMegatronFamily, 13, 14},
      {"mtp-placement", dense,
       [](Job& j) { with_mtp(j, 1), j.layout.pp = 4, j.layout.split.layout = "Et*16|t*16|m|L"; },
       [](Job& j) { with_mtp(j, 1), j.layout.pp = 4, j.layout.split.layout = "Et*8|t*8|t*8|t*8mL"; },
       kMegatronFamily, 14, 16},
      {"mtp-with-cp", dense, [](Job& j) { with_mtp(j, 1), j.layout.cp = 2; }, [](Job& j) { with_mtp(j, 1); }},
      {"batch-by-dp", dense, [](Job& j) { j.layout.global_batch = 100; },
       [](Job& j) { j.layout.global_batch = 128; }},
  };
  return list;
}

const std::vector<Example>& expert_examples() {
  static const std::vector<Example> list = {
      {"moe-needs-sequence-parallel", experts, [](Job& j) { j.layout.tp = 2; },
       [](Job& j) { j.layout.tp = 2, j.layout.sequence_parallel = true; }},
      {"experts-by-ep", experts, [](Job& j) { j.layout.ep = 16; }, [](Job& j) { j.layout.ep = 4; }},
      {"ep-needs-experts", dense, [](Job& j) { j.layout.ep = 2; }, [](Job& j) { j.layout.ep = 1; }},
      {"ep-refuses-fp16", experts, [](Job& j) { j.layout.precision = cluster::Precision::kFp16; },
       [](Job&) {}},
      {"grouped-gemm-needs-bf16", experts, [](Job& j) { j.layout.precision = cluster::Precision::kFp32; },
       [](Job& j) { j.layout.precision = cluster::Precision::kFp32, j.software.grouped_gemm = false; }},
      {"expert-ffn-by-etp", [] { return testing::job_of(testing::expert_model(56, 48, 8, 8, 1000), 64); },
       [](Job& j) { j.layout.etp = 16; }, [](Job& j) { j.layout.etp = 8; }},
      {"expert-bias-by-etp",
       [] {
         Job job = experts();
         testing::change_model(job, [](model::Model& m) { m.classes[0].mlp.bias = true; });
         return job;
       },
       [](Job& j) { j.layout.etp = 2; }, [](Job&) {}},
      {"deepep-needs-experts", dense, [](Job& j) { j.layout.moe_dispatch = MoeDispatch::kDeepEp; },
       [](Job&) {}},
      {"deepep-needs-ranks", experts,
       [](Job& j) { j.layout.ep = 1, j.layout.moe_dispatch = MoeDispatch::kDeepEp; },
       [](Job& j) { j.layout.ep = 8, j.layout.moe_dispatch = MoeDispatch::kDeepEp; }},
      {"deepep-needs-fp32-router", experts,
       [](Job& j) { j.layout.moe_dispatch = MoeDispatch::kDeepEp, j.software.router_fp32 = false; },
       [](Job& j) { j.layout.moe_dispatch = MoeDispatch::kDeepEp, j.software.router_fp32 = true; }},
      {"hybridep-version", experts, [](Job& j) { j.layout.moe_dispatch = MoeDispatch::kHybridEp; },
       [](Job&) {}},
      {"sync-free-only-in-primus", experts, [](Job& j) { j.layout.sync_free_stage = 1; }, [](Job&) {}},
      {"sync-free-range", experts, [](Job& j) { j.layout.sync_free_stage = 4; },
       [](Job& j) { j.layout.sync_free_stage = 3; }},
      {"sync-free-needs-experts", dense, [](Job& j) { j.layout.sync_free_stage = 1; }, [](Job&) {}},
      {"sync-free-refuses-etp", experts, [](Job& j) { j.layout.sync_free_stage = 2, j.layout.etp = 2; },
       [](Job& j) { j.layout.sync_free_stage = 1, j.layout.etp = 2; }},
      {"moe-overlap-version", experts, [](Job& j) { j.layout.overlap.moe_dispatch = true; }, [](Job&) {}},
      {"moe-overlap-needs-ep", experts, [](Job& j) { j.layout.overlap.moe_dispatch = true, j.layout.ep = 1; },
       [](Job& j) { j.layout.overlap.moe_dispatch = true; }},
      {"moe-overlap-needs-vpp", experts, [](Job& j) { j.layout.overlap.moe_dispatch = true; },
       [](Job& j) { j.layout.overlap.moe_dispatch = true, j.layout.vpp = 2; }},
      {"moe-overlap-dispatcher", experts,
       [](Job& j) { j.layout.overlap.moe_dispatch = true, j.layout.moe_dispatch = MoeDispatch::kAllGather; },
       [](Job& j) { j.layout.overlap.moe_dispatch = true; }},
      {"moe-overlap-refuses-recompute", experts,
       [](Job& j) { j.layout.overlap.moe_dispatch = true, selective(j, parallel::kMoe); },
       [](Job& j) { j.layout.overlap.moe_dispatch = true, selective(j, parallel::kMoeActivation); }},
      {"moe-overlap-mtp", experts, [](Job& j) { with_mtp(j, 2), j.layout.overlap.moe_dispatch = true; },
       [](Job& j) { with_mtp(j, 1), j.layout.overlap.moe_dispatch = true; }},
  };
  return list;
}

const std::vector<Example>& recompute_examples() {
  static const std::vector<Example> list = {
      {"recompute-selective-method", dense,
       [](Job& j) { selective(j, parallel::kMlp), j.layout.recompute.method = RecomputeMethod::kBlock; },
       [](Job& j) { selective(j, parallel::kMlp); }},
      {"recompute-full-method", dense, [](Job& j) { full(j, RecomputeMethod::kUnset, 1); },
       [](Job& j) { full(j, RecomputeMethod::kBlock, 1); }},
      {"recompute-layers", dense, [](Job& j) { full(j, RecomputeMethod::kUniform, 5); },
       [](Job& j) { full(j, RecomputeMethod::kUniform, 4); }},
      {"recompute-layer-ids", dense,
       [](Job& j) { full(j, RecomputeMethod::kUnset, 0), j.layout.recompute.layer_ids = {3}; },
       [](Job& j) { full(j, RecomputeMethod::kBlock, 1); }, kMegatron},
      {"recompute-layer-ids", dense,
       [](Job& j) {
         full(j, RecomputeMethod::kUnset, 0), j.layout.recompute.layer_ids = {0, 32};
       },
       [](Job& j) {
         full(j, RecomputeMethod::kUnset, 0), j.layout.recompute.layer_ids = {0, 31};
       },
       kPrimusOnly},
      {"recompute-every-nth", dense, [](Job& j) { selective(j, 0), j.layout.recompute.every_nth_layer = 2; },
       [](Job& j) { selective(j, parallel::kMlp); }},
      {"recompute-module-exists", dense, [](Job& j) { selective(j, parallel::kMoeActivation); },
       [](Job& j) { selective(j, parallel::kMlp); }},
      {"recompute-shared-experts-version", experts, [](Job& j) { selective(j, parallel::kSharedExperts); },
       [](Job& j) { selective(j, parallel::kMoe); }},
      {"recompute-with-fp8", experts,
       [](Job& j) {
         selective(j, parallel::kMoeActivation);
         j.layout.precision = cluster::Precision::kFp8;
         j.layout.fp8_recipe = cluster::Fp8Recipe::kDelayed;
       },
       [](Job& j) { selective(j, parallel::kMoeActivation); }},
      {"distributed-activations-refuse-sequence-parallel", dense,
       [](Job& j) {
         full(j, RecomputeMethod::kBlock, 4);
         j.layout.recompute.distribute_saved_activations = true;
         j.layout.tp = 2, j.layout.sequence_parallel = true;
       },
       [](Job& j) {
         full(j, RecomputeMethod::kBlock, 4);
         j.layout.recompute.distribute_saved_activations = true;
         j.layout.tp = 2;
       }},
      {"distributed-activations-need-full-recompute", dense,
       [](Job& j) { j.layout.recompute.distribute_saved_activations = true, j.layout.tp = 2; },
       [](Job& j) { j.layout.tp = 2; }},
      {"recompute-with-split-weight-gradient", dense,
       [](Job& j) {
         selective(j, parallel::kMlp), j.layout.pp = 4, j.layout.schedule = Algorithm::kZeroBubbleH1;
       },
       [](Job& j) { j.layout.pp = 4, j.layout.schedule = Algorithm::kZeroBubbleH1; }},
      {"cuda-graphs-refuse-full-recompute", dense,
       [](Job& j) { full(j, RecomputeMethod::kBlock, 4), j.layout.cuda_graphs = true; },
       [](Job& j) { full(j, RecomputeMethod::kBlock, 4); }},
      {"cuda-graphs-refuse-selective-recompute", dense,
       [](Job& j) { selective(j, parallel::kCoreAttention), j.layout.cuda_graphs = true; },
       [](Job& j) { j.layout.cuda_graphs = true; }},
      {"cuda-graphs-refuse-expandable-segments", dense,
       [](Job& j) { j.layout.cuda_graphs = true, j.software.expandable_segments = true; },
       [](Job& j) { j.layout.cuda_graphs = true; }},
      {"activation-offload-refuses-pipeline", dense,
       [](Job& j) { j.layout.activation_offload_fraction = 0.5, j.layout.pp = 2; },
       [](Job& j) { j.layout.activation_offload_fraction = 0.5; }},
      {"activation-offload-refuses-recompute", dense,
       [](Job& j) { j.layout.activation_offload_fraction = 0.5, full(j, RecomputeMethod::kBlock, 4); },
       [](Job& j) { j.layout.activation_offload_fraction = 0.5; }},
      {"activation-offload-refuses-cuda-graphs", dense,
       [](Job& j) { j.layout.activation_offload_fraction = 0.5, j.layout.cuda_graphs = true; },
       [](Job& j) { j.layout.activation_offload_fraction = 0.5; }},
      {"activation-offload-fraction", dense, [](Job& j) { j.layout.activation_offload_fraction = 1.0; },
       [](Job& j) { j.layout.activation_offload_fraction = 0.9; }},
  };
  return list;
}

const std::vector<Example>& optimizer_examples() {
  static const std::vector<Example> list = {
      {"fsdp2-refuses-pipeline", dense, [](Job& j) { fsdp2(j), j.layout.pp = 2; }, fsdp2},
      {"fsdp2-refuses-experts", experts, [](Job& j) { fsdp2(j); }, [](Job& j) { fsdp2(j), j.layout.ep = 1; }},
      {"fsdp2-refuses-fp16", dense, [](Job& j) { fsdp2(j), j.layout.precision = cluster::Precision::kFp16; },
       fsdp2},
      {"fsdp2-refuses-tied-embeddings", dense, [](Job& j) { fsdp2(j), tied(j); }, fsdp2},
      {"fsdp2-refuses-gradient-accumulation-fusion", dense,
       [](Job& j) { fsdp2(j), j.software.gradient_accumulation_fusion = true; }, fsdp2},
      {"hsdp-shard-by-dp", dense, [](Job& j) { fsdp2(j), j.layout.fsdp_shard = 12; },
       [](Job& j) { fsdp2(j), j.layout.fsdp_shard = 16; }},
      {"megatron-fsdp-refuses-gradient-accumulation-fusion", dense,
       [](Job& j) { j.layout.sharding = Sharding::kMegatronFsdpParameters; },
       [](Job& j) { j.layout.sharding = Sharding::kMegatronFsdpOptimizer; }},
      {"optimizer-instances-by-dp", experts, [](Job& j) { j.layout.optimizer.instances = 4; },
       [](Job& j) { j.layout.optimizer.instances = 2; }},
      {"param-gather-overlap-needs-sharding", dense,
       [](Job& j) {
         j.layout.sharding = Sharding::kNone;
         j.layout.overlap.parameter_gather = j.layout.overlap.gradient_reduce = true;
       },
       [](Job& j) { j.layout.overlap.parameter_gather = j.layout.overlap.gradient_reduce = true; }},
      {"param-gather-overlap-needs-grad-overlap", dense,
       [](Job& j) { j.layout.overlap.parameter_gather = true; },
       [](Job& j) { j.layout.overlap.parameter_gather = j.layout.overlap.gradient_reduce = true; }},
      {"tp-overlap-needs-sequence-parallel", dense,
       [](Job& j) { j.layout.tp = 2, j.layout.overlap.tensor_parallel = true; },
       [](Job& j) { j.layout.tp = 2, j.layout.sequence_parallel = j.layout.overlap.tensor_parallel = true; }},
      {"optimizer-offload-needs-distributed-optimizer", dense,
       [](Job& j) { j.layout.optimizer.offload_fraction = 0.5, j.layout.sharding = Sharding::kNone; },
       [](Job& j) { j.layout.optimizer.offload_fraction = 0.5; }},
      {"optimizer-offload-needs-precision-aware", dense,
       [](Job& j) { j.layout.optimizer.offload_fraction = 0.5; },
       [](Job& j) { j.layout.optimizer.offload_fraction = 0.5, j.layout.optimizer.precision_aware = true; }},
      {"optimizer-offload-fraction", dense, [](Job& j) { j.layout.optimizer.offload_fraction = 1.5; },
       [](Job& j) { j.layout.optimizer.offload_fraction = 1.0; }},
      {"precision-aware-needs-distributed-optimizer", dense,
       [](Job& j) { j.layout.optimizer.precision_aware = true, j.layout.sharding = Sharding::kNone; },
       [](Job& j) { j.layout.optimizer.precision_aware = true; }},
      {"state-bytes-need-precision-aware", dense, [](Job& j) { j.layout.optimizer.moment_bytes = 2; },
       [](Job& j) { j.layout.optimizer.moment_bytes = 2, j.layout.optimizer.precision_aware = true; }},
      {"muon-version", dense, [](Job& j) { j.layout.optimizer.kind = parallel::OptimizerKind::kMuon; },
       [](Job&) {}},
      {"muon-refuses-fsdp", dense,
       [](Job& j) { j.layout.optimizer.kind = parallel::OptimizerKind::kMuon, fsdp2(j); },
       [](Job& j) { j.layout.optimizer.kind = parallel::OptimizerKind::kMuon; }},
      {"muon-refuses-overlap", dense,
       [](Job& j) {
         j.layout.optimizer.kind = parallel::OptimizerKind::kMuon;
         j.layout.sharding = Sharding::kNone;
         j.layout.overlap.gradient_reduce = true;
       },
       [](Job& j) { j.layout.optimizer.kind = parallel::OptimizerKind::kMuon; }},
      {"fp8-parameters-need-fp8", dense, [](Job& j) { j.layout.fp8_parameters = true; },
       [](Job& j) { j.layout.fp8_parameters = true, j.layout.precision = cluster::Precision::kFp8; }},
      {"fp8-parameters-need-sharding", dense,
       [](Job& j) {
         j.layout.fp8_parameters = true;
         j.layout.precision = cluster::Precision::kFp8;
         j.layout.sharding = Sharding::kNone;
       },
       [](Job& j) { j.layout.fp8_parameters = true, j.layout.precision = cluster::Precision::kFp8; }},
      {"mxfp8-refuses-fp8-parameters", dense,
       [](Job& j) { j.layout.fp8_parameters = true, j.layout.precision = cluster::Precision::kMxfp8; },
       [](Job& j) { j.layout.precision = cluster::Precision::kMxfp8; }},
      {"precision-by-accelerator",
       [] {
         Job job = dense();
         testing::change_cluster(job, [](cluster::Cluster& c) {
           c.accelerator.peak_flops[static_cast<std::size_t>(cluster::Precision::kFp8)] = 0;
         });
         return job;
       },
       [](Job& j) { j.layout.precision = cluster::Precision::kFp8; }, [](Job&) {}},
      {"fp4-version", dense, [](Job& j) { j.layout.precision = cluster::Precision::kMxfp4; },
       [](Job& j) { j.layout.precision = cluster::Precision::kMxfp8; }, kMegatron},
      {"fp4-version", dense, [](Job& j) { j.layout.precision = cluster::Precision::kNvfp4; },
       [](Job& j) { j.layout.precision = cluster::Precision::kMxfp4; }, kPrimusOnly},
  };
  return list;
}

const std::vector<Example>& torchtitan_examples() {
  static const std::vector<Example> list = {
      {"ep-version", experts, [](Job&) {}, [](Job& j) { j.layout.ep = 1; }},
      {"etp-by-tp", experts, [](Job& j) { j.layout.tp = 4, j.layout.etp = 2; },
       [](Job& j) { j.layout.tp = 4, j.layout.etp = 1; }},
      {"microbatches-by-rounds", dense, [](Job& j) { interleaved(j, 4, 2), j.layout.global_batch = 16 * 9; },
       [](Job& j) { interleaved(j, 4, 2), j.layout.global_batch = 16 * 10; }},
      {"tied-embeddings-by-pp", dense, [](Job& j) { tied(j), j.layout.pp = 2; }, tied},
      {"sharding-available", dense, [](Job&) {}, fsdp2},
      {"precision-available", dense, [](Job& j) { j.layout.precision = cluster::Precision::kFp16; },
       [](Job&) {}},
      {"recompute-forms", dense, [](Job& j) { full(j, RecomputeMethod::kBlock, 4); },
       [](Job& j) { full(j, RecomputeMethod::kUniform, 1); }},
      {"dispatch-available", experts, [](Job& j) { j.layout.moe_dispatch = MoeDispatch::kAllGather; },
       [](Job&) {}},
      {"tp-overlap-needs-compile", dense, [](Job& j) { j.layout.overlap.tensor_parallel = true; },
       [](Job& j) { j.layout.overlap.tensor_parallel = j.software.compiled = true; }},
      {"cuda-graphs-refuse-pipeline", dense, [](Job& j) { j.layout.cuda_graphs = true, j.layout.pp = 2; },
       [](Job& j) { j.layout.cuda_graphs = true; }},
      {"cuda-graphs-refuse-synchronising-dispatch", experts, [](Job& j) { j.layout.cuda_graphs = true; },
       [](Job& j) { j.layout.cuda_graphs = true, j.layout.moe_dispatch = MoeDispatch::kHybridEp; }},
  };
  return list;
}

const std::vector<Example>& normalised_examples() {
  static const std::vector<Example> list = {
      {"schedule-by-vpp", dense, [](Job& j) { j.layout.pp = 4, j.layout.vpp = 2; },
       [](Job& j) { interleaved(j, 4, 2); }},
      {"sequence-parallel-at-tp-1", dense, [](Job& j) { j.layout.sequence_parallel = true; },
       [](Job& j) { j.layout.sequence_parallel = true, j.layout.tp = 2; }},
      {"p2p-overlap-without-vpp", dense,
       [](Job& j) { j.layout.pp = 4, j.layout.overlap.point_to_point = true; },
       [](Job& j) { interleaved(j, 4, 2); }},
      {"sync-free-implies-deepep", experts, [](Job& j) { j.layout.sync_free_stage = 2; },
       [](Job& j) { j.layout.sync_free_stage = 2, j.layout.moe_dispatch = MoeDispatch::kDeepEp; }},
      {"recompute-block-beyond-stage", dense, [](Job& j) { full(j, RecomputeMethod::kBlock, 33); },
       [](Job& j) { full(j, RecomputeMethod::kBlock, 32); }},
      {"fsdp2-without-fp8-parameters", dense, [](Job& j) { fsdp2(j), j.layout.fp8_parameters = true; },
       fsdp2},
      {"megatron-fsdp-overlaps", dense, [](Job& j) { j.layout.sharding = Sharding::kMegatronFsdpGradients; },
       [](Job& j) {
         j.layout.sharding = Sharding::kMegatronFsdpGradients;
         j.layout.overlap.gradient_reduce = true;
       }},
      {"ep-without-experts", dense, [](Job& j) { j.layout.ep = 2; }, [](Job&) {}},
      {"stages-weigh-embedding-and-head", dense, [](Job& j) { j.layout.pp = 4; },
       [](Job& j) { j.layout.pp = 4, j.layout.split.layout = "Et*8|t*8|t*8|t*8L"; }},
      {"group-by-rounds", dense, [](Job& j) { interleaved(j, 4, 2), j.layout.global_batch = 16 * 10; },
       [](Job& j) { interleaved(j, 4, 2), j.layout.global_batch = 16 * 8; }},
  };
  return list;
}

const std::vector<Example>& unwise_examples() {
  static const std::vector<Example> list = {
      {"tp-across-nodes", dense, [](Job& j) { j.layout.tp = 16; }, [](Job& j) { j.layout.tp = 8; }},
      {"cp-all-to-all-across-nodes", dense,
       [](Job& j) { j.layout.cp = 16, j.layout.context_all_to_all = true; },
       [](Job& j) { j.layout.cp = 16; }},
      {"microbatches-below-stages", dense, [](Job& j) { j.layout.pp = 4, j.layout.global_batch = 32; },
       [](Job& j) { j.layout.pp = 4, j.layout.global_batch = 64; }},
      {"deepep-without-gpu-rdma",
       [] {
         Job job = testing::job_of(testing::expert_model(56, 48, 8, 64), 64);
         testing::change_cluster(job, [](cluster::Cluster& c) { c.node.gpu_initiated_rdma = false; });
         return job;
       },
       [](Job& j) { j.layout.ep = 16, j.layout.moe_dispatch = MoeDispatch::kDeepEp; },
       [](Job& j) { j.layout.ep = 16; }},
      {"deepep-inside-node", experts, [](Job& j) { j.layout.moe_dispatch = MoeDispatch::kDeepEp; },
       [](Job&) {}},
      {"deepep-casts-router", experts,
       [](Job& j) { j.layout.moe_dispatch = MoeDispatch::kDeepEp, j.software.router_fp32 = false; },
       [](Job& j) { j.layout.moe_dispatch = MoeDispatch::kDeepEp; }},
      {"router-precision", [] { return testing::job_of(testing::expert_model(56, 48, 8, 64), 64); },
       [](Job&) {}, [](Job& j) { j.software.router_fp32 = true; }},
      {"expert-ffn-narrow", [] { return testing::job_of(testing::expert_model(56, 48, 8, 64, 768), 64); },
       [](Job& j) { j.layout.etp = 4; }, [](Job& j) { j.layout.etp = 2; }},
      {"few-tokens-per-expert", [] { return testing::job_of(testing::expert_model(56, 48, 8, 256), 64); },
       [](Job& j) { j.layout.cp = 8, j.layout.sequence_tokens = 4096; }, [](Job& j) { j.layout.ep = 64; }},
      {"ep-with-fp16", experts, [](Job& j) { j.layout.precision = cluster::Precision::kFp16; }, [](Job&) {}},
      {"stages-unbalanced", dense, [](Job& j) { j.layout.pp = 4, j.layout.split.first_layers = 14; },
       [](Job& j) { j.layout.pp = 4, j.layout.split.last_layers = 5; }},
      {"first-stage-heavy", dense, [](Job& j) { j.layout.pp = 4, j.layout.split.first_layers = 11; },
       [](Job& j) { j.layout.pp = 4, j.layout.split.first_layers = 5; }},
      {"recompute-nothing", dense, [](Job& j) { full(j, RecomputeMethod::kBlock, 0); },
       [](Job& j) { full(j, RecomputeMethod::kBlock, 1); }},
      {"recompute-fused-attention", dense, [](Job& j) { selective(j, parallel::kCoreAttention); },
       [](Job& j) { selective(j, parallel::kMlp); }},
      {"fsdp-with-tensor-parallel", dense, [](Job& j) { fsdp2(j), j.layout.tp = 2; }, fsdp2},
      {"sharding-without-data-parallel", dense, [](Job& j) { j.layout.pp = 8, j.layout.tp = 8; },
       [](Job& j) { j.layout.pp = 8, j.layout.tp = 4; }},
      {"split-weight-gradient-with-overlap", dense,
       [](Job& j) {
         j.layout.pp = 4;
         j.layout.schedule = Algorithm::kZeroBubbleH1;
         j.layout.overlap.gradient_reduce = true;
       },
       [](Job& j) { j.layout.pp = 4, j.layout.schedule = Algorithm::kZeroBubbleH1; }},
      {"zero-bubble-without-pipeline", dense, [](Job& j) { j.layout.schedule = Algorithm::kZeroBubbleH1; },
       [](Job& j) { j.layout.schedule = Algorithm::kZeroBubbleH1, j.layout.pp = 2; }},
      {"fp8-delayed-with-turbo", dense,
       [](Job& j) {
         j.layout.precision = cluster::Precision::kFp8;
         j.layout.fp8_recipe = cluster::Fp8Recipe::kDelayed;
       },
       [](Job& j) {
         j.layout.precision = cluster::Precision::kFp8;
         j.layout.fp8_recipe = cluster::Fp8Recipe::kTensorwise;
       }},
  };
  return list;
}

std::vector<Example> all_examples() {
  std::vector<Example> all;
  for (const auto* list :
       {&parallel_examples(), &pipeline_examples(), &expert_examples(), &recompute_examples(),
        &optimizer_examples(), &torchtitan_examples(), &normalised_examples(), &unwise_examples()}) {
    all.insert(all.end(), list->begin(), list->end());
  }
  return all;
}

const Example* find_example(const std::vector<Example>& examples, std::string_view rule,
                            const BackendVersion& v) {
  for (const Example& example : examples) {
    const bool covered = (example.backends & (1U << static_cast<unsigned>(v.backend))) != 0 &&
                         v.generation >= example.since && v.generation < example.before;
    if (example.rule == rule && covered) return &example;
  }
  return nullptr;
}

std::vector<BackendVersion> every_version() {
  std::vector<BackendVersion> versions;
  for (const Backend backend : {Backend::kMegatronCore, Backend::kPrimus, Backend::kTorchtitan}) {
    for (const BackendVersion& version : known_versions(backend)) versions.push_back(version);
  }
  return versions;
}

std::string label(const BackendVersion& v) {
  return std::string(name(v.backend)) + "@" + std::string(v.version);
}

TEST(Rules, EachHasALegalAndAnIllegalExampleInEveryVersionThatHasIt) {
  const std::vector<Example> examples = all_examples();
  for (const BackendVersion& version : every_version()) {
    for (const Rule& rule : rules(name(version.backend), version.version)) {
      const Example* example = find_example(examples, rule.name, version);
      ASSERT_NE(example, nullptr) << label(version) << " " << rule.name << " has no example";
      for (const bool break_it : {true, false}) {
        Job job = example->base();
        job.backend = std::string(name(version.backend));
        job.backend_version = std::string(version.version);
        (break_it ? example->illegal : example->legal)(job);
        EXPECT_EQ(rule.violated(job), break_it) << label(version) << " " << rule.name;
        if (!break_it) continue;
        EXPECT_THAT(rule.message(job), ::testing::Not(::testing::IsEmpty())) << rule.name;
        EXPECT_THAT(rule.fix(job), ::testing::Not(::testing::IsEmpty())) << rule.name;
      }
    }
  }
}

TEST(Rules, EveryExampleIsUsed) {
  std::set<std::string_view> names;
  for (const BackendVersion& version : every_version()) {
    for (const Rule& rule : rules(name(version.backend), version.version)) names.insert(rule.name);
  }
  for (const Example& example : all_examples()) EXPECT_TRUE(names.contains(example.rule)) << example.rule;
}

TEST(Rules, NamesAreUniqueAndTextsAreThere) {
  for (const BackendVersion& version : every_version()) {
    std::set<std::string_view> seen;
    for (const Rule& rule : rules(name(version.backend), version.version)) {
      EXPECT_TRUE(seen.insert(rule.name).second) << label(version) << " has " << rule.name << " twice";
      EXPECT_GT(rule.summary.size(), 20U) << rule.name;
      EXPECT_LT(rule.summary.size(), 140U) << rule.name;
      EXPECT_FALSE(rule.source.empty()) << rule.name;
    }
  }
}

TEST(Rules, IllegalOnesComeFirst) {
  for (const BackendVersion& version : every_version()) {
    Grade last = Grade::kIllegal;
    for (const Rule& rule : rules(name(version.backend), version.version)) {
      EXPECT_GE(rule.grade, last) << label(version) << " " << rule.name;
      last = rule.grade;
    }
    const RuleSet set = rule_set(name(version.backend), version.version);
    ASSERT_GT(set.illegal, 0U);
    EXPECT_EQ(set.rules[set.illegal - 1].grade, Grade::kIllegal);
    EXPECT_EQ(set.rules[set.illegal].grade, Grade::kNormalised);
  }
}

TEST(Rules, ALegalJobViolatesNothingIllegal) {
  for (const BackendVersion& version : every_version()) {
    Job job = dense();
    job.backend = std::string(name(version.backend));
    job.backend_version = std::string(version.version);
    if (version.backend == Backend::kTorchtitan) job.layout.sharding = Sharding::kFsdp2;
    EXPECT_TRUE(rule_set(job.backend, job.backend_version).legal(job)) << label(version);
  }
}

TEST(Rules, UnknownBackendsAndVersionsAreRefusedWithTheKnownOnes) {
  EXPECT_THROW(rules("megatron-cor", ""), base::UserError);
  try {
    rules("megatron-core", "0.9");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_THAT(error.message(), ::testing::HasSubstr("0.15"));
  }
  EXPECT_EQ(rules("megatron-core", "core_v0.15.2").data(), rules("megatron-lm", "0.15").data());
  EXPECT_EQ(rules("megatron-core", "").data(), rules("megatron-core", "0.19").data());
  EXPECT_EQ(rules("primus", "26.5").data(), rules("primus", "0.16").data());
}

TEST(RuleSet, CountsEveryViolatedRuleAndCanLeaveOneOut) {
  Job job = dense();
  job.layout.tp = 3;
  job.layout.schedule = Algorithm::kZeroBubbleH2;
  const RuleSet set = rule_set("megatron-core", "0.15");
  std::vector<std::int64_t> counts(set.rules.size());
  EXPECT_FALSE(set.legal(job, counts));
  EXPECT_FALSE(set.legal(job, counts));
  std::set<std::string_view> violated;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 2) violated.insert(set.rules[i].name);
  }
  // 64 GPUs, 32 heads, 8 key-value heads, width 14336 and TP 3; zb-h2 is no schedule of Megatron-LM and not
  // built.
  EXPECT_TRUE(violated.contains("heads-by-tp"));
  EXPECT_TRUE(violated.contains("kv-heads-by-tp"));
  EXPECT_TRUE(violated.contains("ffn-by-tp"));
  EXPECT_TRUE(violated.contains("world-by-model-parallel"));
  EXPECT_TRUE(violated.contains("schedule-launchable"));

  job.layout.tp = 1;
  job.layout.pp = 4;
  job.layout.schedule = Algorithm::kGpipe;
  EXPECT_FALSE(set.legal(job));
  EXPECT_TRUE(set.without("schedule-launchable").legal(job));
  EXPECT_THAT(check(job, "schedule-launchable"),
              ::testing::Not(::testing::Contains(::testing::Field(&Violation::grade, Grade::kIllegal))));
}

}  // namespace
}  // namespace sextant::backends
