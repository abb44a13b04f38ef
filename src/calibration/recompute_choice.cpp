#include "calibration/recompute_choice.h"

#include <fmt/format.h>

#include "training/memory.h"

namespace sextant::calibration {
namespace {

using parallel::RecomputeGranularity;
using parallel::RecomputeMethod;

bool fits(const training::Job& job, const cost::Efficiency& efficiency) {
  return training::memory(job, efficiency).peak_bytes <= job.cluster->accelerator.memory_bytes;
}

}  // namespace

std::string choose_cheapest_recompute(training::Job& job) {
  const cost::Efficiency efficiency =
      cost::efficiency_for(job.software.framework, job.software.version, job.cluster->accelerator);
  parallel::Recompute& r = job.layout.recompute;
  r = {};
  if (fits(job, efficiency)) return "none";
  if (job.software.attention != layers::AttentionKernel::kFused) {
    r.granularity = RecomputeGranularity::kSelective;
    r.modules = parallel::kCoreAttention;
    if (fits(job, efficiency)) return "selective (core attention)";
  }
  r = {};
  r.granularity = RecomputeGranularity::kFull;
  r.method = RecomputeMethod::kBlock;
  const int stages = job.layout.pp * job.layout.vpp;
  const int most = static_cast<int>((job.model->layers() + stages - 1) / stages);
  for (r.layers = 1; r.layers < most && !fits(job, efficiency);) ++r.layers;
  return fmt::format("full, {} of {} layers a stage", r.layers, most);
}

}  // namespace sextant::calibration
