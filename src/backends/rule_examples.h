// Examples of rules: jobs that break one, and the same jobs without the fault. Test code only.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "backends/rule_entry.h"
#include "backends/test_jobs.h"

namespace sextant::backends::testing {

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

inline Job dense() { return dense_job(); }
inline Job experts() { return expert_job(); }

inline void full(Job& job, RecomputeMethod method, int layers) {
  job.layout.recompute.granularity = RecomputeGranularity::kFull;
  job.layout.recompute.method = method;
  job.layout.recompute.layers = layers;
}
inline void selective(Job& job, std::uint32_t modules) {
  job.layout.recompute.granularity = RecomputeGranularity::kSelective;
  job.layout.recompute.modules = modules;
}
inline void fsdp2(Job& job) {
  job.layout.sharding = Sharding::kFsdp2;
  job.software.gradient_accumulation_fusion = false;
}
inline void interleaved(Job& job, int pp, int vpp) {
  job.layout.pp = pp;
  job.layout.vpp = vpp;
  job.layout.schedule = Algorithm::kInterleaved;
  job.layout.overlap.point_to_point = true;
}
inline void with_mtp(Job& job, int depths) {
  change_model(job, [&](model::Model& m) { m.mtp.depths = depths; });
}
inline void tied(Job& job) {
  change_model(job, [](model::Model& m) { m.tied_embeddings = true; });
}

// By family of rules.
std::vector<Example> parallel_examples();
std::vector<Example> pipeline_examples();
std::vector<Example> expert_examples();
std::vector<Example> recompute_examples();
std::vector<Example> optimizer_examples();
std::vector<Example> torchtitan_examples();
std::vector<Example> normalised_examples();
std::vector<Example> unwise_examples();

}  // namespace sextant::backends::testing
