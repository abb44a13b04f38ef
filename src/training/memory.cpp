#include "training/memory.h"

#include "base/error.h"
#include "training/bytes_per_parameter.h"
#include "training/memory_terms.h"

namespace sextant::training {
namespace {

StateBytes state_bytes_of(const Job& job) {
  return state_bytes(state_rule(job.software.framework), job.layout, job.software,
                     job.cluster->accelerator.generation);
}

}  // namespace

Memory memory(const Job& job, const cost::Efficiency& efficiency) {
  const auto dealt =
      parallel::deal_layers(static_cast<int>(job.model->layers()), job.model->mtp.depths, job.layout);
  if (const auto* reason = std::get_if<std::string>(&dealt)) throw base::UserError(*reason);
  const auto& table = std::get<parallel::StageTable>(dealt);
  const MemoryTerms terms = memory_terms(job);
  const std::vector<int> live = live_chunks(job.layout);
  const auto peaks = live_peaks(job.layout);

  Memory result;
  result.limit_bytes = job.cluster->memory_limit_bytes();
  for (int rank = 0; rank < job.layout.pp; ++rank) {
    result.stages.push_back(stage_memory(terms, job.layout, table, live, rank, efficiency, true));
    result.stages.back().pending_weight_gradients =
        static_cast<double>(peaks[static_cast<std::size_t>(rank)].pending_weight_gradients) / job.layout.vpp;
    if (result.stages.back().total_bytes > result.peak_bytes) {
      result.peak_bytes = result.stages.back().total_bytes;
      result.peak_stage = rank;
    }
  }
  result.fits = result.peak_bytes <= result.limit_bytes;
  return result;
}

BytesPerParameter bytes_per_dense_parameter(const Job& job) { return state_bytes_of(job).dense; }

BytesPerParameter bytes_per_expert_parameter(const Job& job) { return state_bytes_of(job).expert; }

}  // namespace sextant::training
