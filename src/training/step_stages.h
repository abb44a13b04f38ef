// Stage times of a layout: what every chunk takes for one micro-batch, and what that time is spent on.
//
// A layer's time is built in four steps from its priced operations (step_terms.h):
//   1. gpu = forward + backward + what recomputation runs again, each with the part of its collectives that
//   overlap
//      does not hide
//   2. launch = (gpu^p + host^p)^(1/p): a GPU that is faster than the host can launch waits for it
//   3. + synchronisations of a dropless expert layer
//   4. with FSDP: (layer⁴ + traffic⁴)^¼ + contention · traffic
// The surplus of 2 to 4 is spread over the phases in proportion. Exponents and shares are fitted
// (cost/efficiency.h); the forms are those of Llama and MPT on FSDP and of launch-bound runs, see
// docs/design/projection.md.
//
// Pure functions; those on the search's hot path allocate only what the caller's vectors lack.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "cost/efficiency.h"
#include "parallel/layout.h"
#include "parallel/stages.h"
#include "pipeline/replay.h"
#include "training/exposed.h"
#include "training/memory_terms.h"
#include "training/step_terms.h"

namespace sextant::training {

/// What the time of one micro-batch on a rank is spent on; the sum is the rank's busy time.
struct Spent {
  double compute_s = 0;
  double recompute_s = 0;  ///< compute that runs again
  double tensor_s = 0;     ///< exposed collectives, recomputation's included
  double context_s = 0;
  double dispatch_s = 0;
  double sharded_s = 0;      ///< FSDP gathers and scatters
  double offload_s = 0;      ///< activations to the host and back
  double host_s = 0;         ///< waiting for launches
  double synchronise_s = 0;  ///< waiting for the host to learn token counts

  double communication_s() const { return tensor_s + context_s + dispatch_s + sharded_s + offload_s; }
  double overhead_s() const { return host_s + synchronise_s; }
  double total_s() const { return compute_s + recompute_s + communication_s() + overhead_s(); }
  void add(const Spent& other, double times);
};

/// One layer (embedding, head, prediction depth) for one micro-batch: its durations in the schedule, and what
/// they are spent on. forward_s + backward_input_s + backward_weight_s = spent.total_s() up to rounding.
struct LayerCost {
  double forward_s = 0;
  double backward_input_s = 0;  ///< recomputation included: it precedes the input gradient
  double backward_weight_s = 0;
  Spent spent;

  void add(const LayerCost& other, double times);
};

enum class Rerun : std::uint8_t { kNothing, kModules, kLayer };
inline constexpr int kReruns = 3;

/// What of a layer runs besides its operations: traffic of FSDP and bytes offloaded to the host.
struct LayerTraffic {
  double sharded_s = 0;
  double offload_s = 0;  ///< one way
};

LayerCost layer_cost(const LayerTime& layer, Rerun rerun, const LayerTraffic& traffic,
                     const parallel::Layout& layout, const layers::Software& software,
                     const cost::Efficiency& efficiency);

/// Layers of a virtual stage by class and by how they are recomputed: entry class · kReruns + Rerun.
void count_layers(const parallel::Stage& stage, const MemoryTerms& memory,
                  const parallel::Recompute& recompute, std::span<int> counts);
/// How prediction depth `depth` is recomputed.
Rerun rerun_of_depth(int depth, const MemoryTerms& memory, const parallel::Recompute& recompute);

/// A pipeline rank's sums over its chunks.
struct RankCost {
  Spent spent;                        ///< of one micro-batch
  layers::RankParameters parameters;  ///< held by the rank
  double last_backward_s = 0;         ///< backward of one micro-batch, all chunks
  double forward_s = 0;
  bool embedding = false, loss = false;
  int prediction_depths = 0;
};

/// Scratch and result of stage_costs; reused between calls.
struct StageCosts {
  pipeline::Durations durations;  ///< without sends
  std::vector<RankCost> ranks;
  std::vector<LayerCost> by_class;  ///< class · kReruns + Rerun, those in use
  LayerCost embedding, head, tied_head;
  std::array<LayerCost, kReruns> prediction_depth;
  std::vector<int> counts;
};

void stage_costs(const StepTerms& step, const MemoryTerms& memory, const parallel::Layout& layout,
                 const parallel::StageTable& table, const layers::Software& software, const Buckets& buckets,
                 const cost::Machine& machine, StageCosts& costs);

/// (a^p + b^p)^(1/p): the larger of the two, smoothly.
double smooth_maximum(double a, double b, double p);

}  // namespace sextant::training
