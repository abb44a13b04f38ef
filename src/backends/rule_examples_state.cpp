// Examples of rules about activations, optimizer state, sharding and precision.
#include "backends/rule_examples.h"

namespace sextant::backends::testing {

std::vector<Example> recompute_examples() {
  return {
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
}

std::vector<Example> optimizer_examples() {
  return {
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
         change_cluster(job, [](cluster::Cluster& c) {
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
}

}  // namespace sextant::backends::testing
