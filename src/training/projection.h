// The projection: how long a step of a job takes, and why.
#pragma once

#include <string>
#include <vector>

#include "training/job.h"
#include "training/memory.h"

namespace sextant::training {

struct OperationTime {
  std::string name;
  double time_s = 0;  ///< on the critical stage, whole step
  double share = 0;   ///< of step_s
};

/// On the critical stage step_s = compute_s + recompute_s + bubble_s + exposed_communication_s + optimizer_s
/// + overhead_s exactly.
struct Time {
  double step_s = 0;
  double compute_s = 0;
  double recompute_s = 0;
  double bubble_s = 0;
  double bubble_fraction = 0;  ///< bubble_s / step_s
  double exposed_communication_s = 0;
  double optimizer_s = 0;
  double overhead_s = 0;
  int critical_stage = 0;
  std::vector<OperationTime> by_operation;  ///< adds up to step_s; filled by project(), not by score()
};

struct Throughput {
  double tokens_per_s_per_gpu = 0;
  double tokens_per_s = 0;
  double tflops_per_gpu = 0;  ///< model FLOPs, attention causal
  double mfu = 0;             ///< of the dense peak of the GEMM precision; 0 when that is unknown
  double interval_low = 0;    ///< 90 % interval of tokens_per_s_per_gpu
  double interval_high = 0;
};

struct Projection {
  Memory memory;
  Time time;
  Throughput throughput;
  std::vector<int> stage_layers;     ///< decoder layers of each pipeline rank
  std::vector<std::string> sources;  ///< provenance of the efficiency parameters
};

/// The summary that searches compare.
struct Score {
  bool fits = false;
  double peak_bytes = 0;
  double step_s = 0;
  double tokens_per_s_per_gpu = 0;
};

/// Projects many layouts of one job. Terms that layouts share (operation times of a layer under the same
/// tensor, context, expert degrees, micro-batch, precision and dispatch; schedules with the same stage times)
/// are computed once and kept. One Projector per thread; not thread-safe. score() and project() run the same
/// code, so a layout's figures agree exactly.
class Projector {
 public:
  explicit Projector(const Job& job);
  /// With another efficiency record than cost::efficiency_for gives: calibration and tests.
  Projector(const Job& job, cost::Efficiency efficiency);
  ~Projector();
  Projector(Projector&&) noexcept;

  /// REQUIRES: the layout passes the backend's rules.
  Score score(const parallel::Layout& layout);
  Projection project(const parallel::Layout& layout);
  /// Single figures of score().
  double step_s(const parallel::Layout& layout);
  double peak_bytes(const parallel::Layout& layout);

  /// Lower bounds that no layout can beat which differs from `layout` only in schedule, micro-batch group,
  /// model chunks, recomputation and stage split: static bytes of the lightest possible heaviest stage;
  /// perfectly balanced compute with no bubble and data-parallel traffic hidden. `layout` itself need not be
  /// legal in those respects.
  double peak_bytes_lower_bound(const parallel::Layout& layout);
  double step_s_lower_bound(const parallel::Layout& layout);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// project() for one job.
Projection project(const Job& job);

}  // namespace sextant::training
