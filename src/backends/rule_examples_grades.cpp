// Examples of rules of torchtitan, and of what is normalised or unwise.
#include "backends/rule_examples.h"

namespace sextant::backends::testing {

std::vector<Example> torchtitan_examples() {
  return {
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
}

std::vector<Example> normalised_examples() {
  return {
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
}

std::vector<Example> unwise_examples() {
  return {
      {"tp-across-nodes", dense, [](Job& j) { j.layout.tp = 16; }, [](Job& j) { j.layout.tp = 8; }},
      {"cp-all-to-all-across-nodes", dense,
       [](Job& j) { j.layout.cp = 16, j.layout.context_all_to_all = true; },
       [](Job& j) { j.layout.cp = 16; }},
      {"microbatches-below-stages", dense, [](Job& j) { j.layout.pp = 4, j.layout.global_batch = 32; },
       [](Job& j) { j.layout.pp = 4, j.layout.global_batch = 64; }},
      {"deepep-without-gpu-rdma",
       [] {
         Job job = job_of(expert_model(56, 48, 8, 64), 64);
         change_cluster(job, [](cluster::Cluster& c) { c.node.gpu_initiated_rdma = false; });
         return job;
       },
       [](Job& j) { j.layout.ep = 16, j.layout.moe_dispatch = MoeDispatch::kDeepEp; },
       [](Job& j) { j.layout.ep = 16; }},
      {"deepep-inside-node", experts, [](Job& j) { j.layout.moe_dispatch = MoeDispatch::kDeepEp; },
       [](Job&) {}},
      {"deepep-casts-router", experts,
       [](Job& j) { j.layout.moe_dispatch = MoeDispatch::kDeepEp, j.software.router_fp32 = false; },
       [](Job& j) { j.layout.moe_dispatch = MoeDispatch::kDeepEp; }},
      {"router-precision", [] { return job_of(expert_model(56, 48, 8, 64), 64); }, [](Job&) {},
       [](Job& j) { j.software.router_fp32 = true; }},
      {"expert-ffn-narrow", [] { return job_of(expert_model(56, 48, 8, 64, 768), 64); },
       [](Job& j) { j.layout.etp = 4; }, [](Job& j) { j.layout.etp = 2; }},
      {"few-tokens-per-expert", [] { return job_of(expert_model(56, 48, 8, 256), 64); },
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
      {"zb-v-needs-microbatches", dense,
       [](Job& j) {
         j.layout.pp = 4, j.layout.vpp = 2, j.layout.schedule = Algorithm::kZeroBubbleV;
         j.layout.global_batch = 6 * j.layout.micro_batch * j.layout.dp();
       },
       [](Job& j) {
         j.layout.pp = 4, j.layout.vpp = 2, j.layout.schedule = Algorithm::kZeroBubbleV;
         j.layout.global_batch = 7 * j.layout.micro_batch * j.layout.dp();
       }},
      {"zero-bubble-without-pipeline", dense, [](Job& j) { j.layout.schedule = Algorithm::kZeroBubbleH1; },
       [](Job& j) { j.layout.schedule = Algorithm::kZeroBubbleH1, j.layout.pp = 2; }},
  };
}

}  // namespace sextant::backends::testing
