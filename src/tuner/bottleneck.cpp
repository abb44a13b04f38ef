#include "tuner/bottleneck.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace sextant::tuner {
namespace {

constexpr double kLeastShare = 0.03;
constexpr double kScarceMemory = 0.9;

/// A group of entries of training::Time::by_operation, and the knobs that move it. Why each is listed:
/// - bubble: (p − 1)/(m v) of the step under 1F1B (Narayanan et al. 2021, arXiv 2104.04473): fewer stages,
///   more micro-batches (smaller mbs, less data parallelism through more tp/cp), more chunks, other
///   schedules;
/// - tensor, context and expert exchange: less of that degree, another dispatcher, overlap;
/// - recomputation: recompute less, or make room for it;
/// - gradients and parameters: overlap, sharding, fewer replicas;
/// - matrix products: precision, larger micro-batches, less cutting of matrices;
/// - host and fixed costs: fewer, larger micro-batches.
struct Cause {
  std::string_view resource;
  std::vector<std::string_view> operations;
  std::vector<std::string_view> axes;
};

const std::vector<Cause>& causes() {
  static const std::vector<Cause> kCauses{
      {"pipeline bubble",
       {"bubble", "pipeline sends"},
       {"pp", "vpp", "schedule", "mbs", "group", "tp", "cp", "first_layers", "last_layers", "overlap_p2p"}},
      {"exchange of tokens between experts",
       {"expert dispatch", "permute", "expert synchronisation"},
       {"ep", "etp", "dispatch", "sync_free", "overlap_moe", "tp", "mbs"}},
      {"tensor-parallel communication",
       {"tensor-parallel communication"},
       {"tp", "overlap_tp", "pp", "sequence_parallel"}},
      {"context-parallel communication", {"context-parallel communication"}, {"cp", "tp"}},
      {"recomputation", {"recompute"}, {"recompute", "pp", "tp", "ep", "mbs", "sharding", "schedule"}},
      {"gradients and parameters between replicas",
       {"gradient reduction", "parameter gather", "sharded parameters"},
       {"overlap_grad_reduce", "overlap_param_gather", "sharding", "tp", "pp", "ep"}},
      {"arithmetic of experts",
       {"routed experts", "shared experts"},
       {"precision", "mbs", "ep", "etp", "tp"}},
      {"arithmetic of attention and dense layers",
       {"attention projections", "attention core", "dense MLP", "norm", "residual", "quantise"},
       {"precision", "mbs", "tp", "cp"}},
      {"vocabulary: embedding, head and loss",
       {"embedding", "head", "loss"},
       {"loss", "tp", "last_layers", "mbs"}},
      {"optimizer", {"optimizer"}, {"sharding", "pp", "tp", "ep"}},
      {"host and fixed costs",
       {"host launches", "fixed per step", "other kernels"},
       {"mbs", "vpp", "ep", "sync_free"}},
  };
  return kCauses;
}

}  // namespace

std::vector<Bottleneck> bottlenecks(const training::Projection& projection) {
  std::vector<Bottleneck> found;
  for (const Cause& cause : causes()) {
    double share = 0;
    for (const training::OperationTime& operation : projection.time.by_operation) {
      if (std::ranges::find(cause.operations, operation.name) != cause.operations.end())
        share += operation.share;
    }
    if (share < kLeastShare) continue;
    found.push_back({std::string(cause.resource), share, {cause.axes.begin(), cause.axes.end()}});
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, &Bottleneck::share);
  const training::Memory& memory = projection.memory;
  const double filled = memory.limit_bytes > 0 ? memory.peak_bytes / memory.limit_bytes : 0;
  if (filled > kScarceMemory) {
    found.insert(found.begin(), {fmt::format("memory of stage {}", memory.peak_stage),
                                 filled,
                                 {"recompute", "mbs", "tp", "pp", "ep", "cp", "vpp", "schedule", "sharding",
                                  "precision", "loss", "first_layers", "last_layers"}});
  }
  return found;
}

}  // namespace sextant::tuner
