// Examples of rules about degrees, pipelines and experts.
#include "backends/rule_examples.h"

namespace sextant::backends::testing {

std::vector<Example> parallel_examples() {
  return {
      {"degrees-positive", dense, [](Job& j) { j.layout.tp = 0; }, [](Job& j) { j.layout.tp = 1; }},
      {"world-by-cluster", dense, [](Job& j) { j.layout.world = 72; }, [](Job&) {}},
      {"world-by-model-parallel", dense, [](Job& j) { j.layout.pp = 3; }, [](Job& j) { j.layout.pp = 4; }},
      {"world-by-expert-parallel", experts, [](Job& j) { j.layout.etp = 3; },
       [](Job& j) { j.layout.etp = 2; }},
      {"heads-by-tp", dense, [](Job& j) { j.layout.tp = 3; }, [](Job& j) { j.layout.tp = 4; }},
      {"kv-heads-by-tp", dense, [](Job& j) { j.layout.tp = 16; }, [](Job& j) { j.layout.tp = 8; },
       kMegatronFamily, 0, 16},
      {"kv-heads-by-tp", [] { return job_of(dense_model(48, 48, 6), 64); }, [](Job& j) { j.layout.tp = 4; },
       [](Job& j) { j.layout.tp = 12; }, kMegatronFamily, 16},
      {"kv-heads-by-tp", dense, [](Job& j) { j.layout.tp = 16; }, [](Job& j) { j.layout.tp = 8; },
       kTorchtitanOnly},
      {"ffn-by-tp", [] { return job_of(dense_model(32, 32, 8, 1000), 64); }, [](Job& j) { j.layout.tp = 16; },
       [](Job& j) { j.layout.tp = 8; }},
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
         change_model(job, [](model::Model& m) { m.classes[0].attention.window_tokens = 128; });
         return job;
       },
       [](Job& j) { j.layout.cp = 2; }, [](Job& j) { j.layout.cp = 2, j.layout.context_all_to_all = true; }},
      {"sequence-by-positions",
       [] {
         Job job = dense();
         change_model(job, [](model::Model& m) {
           m.positions = model::Positions::kLearned;
           m.maximum_positions = 2048;
         });
         return job;
       },
       [](Job& j) { j.layout.sequence_tokens = 4096; }, [](Job& j) { j.layout.sequence_tokens = 2048; }},
  };
}

std::vector<Example> pipeline_examples() {
  return {
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
}

std::vector<Example> expert_examples() {
  return {
      {"moe-needs-sequence-parallel", experts, [](Job& j) { j.layout.tp = 2; },
       [](Job& j) { j.layout.tp = 2, j.layout.sequence_parallel = true; }},
      {"experts-by-ep", experts, [](Job& j) { j.layout.ep = 16; }, [](Job& j) { j.layout.ep = 4; }},
      {"ep-needs-experts", dense, [](Job& j) { j.layout.ep = 2; }, [](Job& j) { j.layout.ep = 1; }},
      {"ep-refuses-fp16", experts, [](Job& j) { j.layout.precision = cluster::Precision::kFp16; },
       [](Job&) {}},
      {"grouped-gemm-needs-bf16", experts, [](Job& j) { j.layout.precision = cluster::Precision::kFp32; },
       [](Job& j) { j.layout.precision = cluster::Precision::kFp32, j.software.grouped_gemm = false; }},
      {"expert-ffn-by-etp", [] { return job_of(expert_model(56, 48, 8, 8, 1000), 64); },
       [](Job& j) { j.layout.etp = 16; }, [](Job& j) { j.layout.etp = 8; }},
      {"expert-bias-by-etp",
       [] {
         Job job = experts();
         change_model(job, [](model::Model& m) { m.classes[0].mlp.bias = true; });
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
}

}  // namespace sextant::backends::testing
