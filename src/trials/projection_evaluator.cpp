// The projection as evaluator: what a tree search over layouts may leave out, and why that is safe.
//
// Legality: decision_plan.h says when each rule may be asked, and what legal completions may be counted by.
//
// Worth. With degrees, micro-batch and sharding fixed, training::Projector bounds step and peak whatever the
// rest. With the schedule and the stage split fixed as well, no completion is faster than the one that
// recomputes nothing and overlaps everything, and none needs less memory than the one that recomputes every
// layer.
#include "trials/projection_evaluator.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/rule_knobs.h"
#include "backends/rules.h"
#include "training/projection.h"
#include "trials/decision_plan.h"
#include "trials/layout_space.h"

namespace sextant::trials {
namespace {

/// Axes that change which operations a layer has, though no bound covers them: tried one by one.
constexpr std::array<std::string_view, 3> kOperationAxes{"dispatch", "sync_free", "loss"};
/// With these fixed too, only recomputation and overlap are open.
constexpr std::array<std::string_view, 5> kScheduleAxes{"vpp", "schedule", "group", "first_layers",
                                                        "last_layers"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Axes that relaxed_bound sets to what costs least.
bool relaxed_last(std::string_view name) { return name == "recompute" || name.starts_with("overlap_"); }

/// What all evaluators of one search share.
struct Plan : DecisionPlan {
  std::size_t degree_depth = 0;    ///< prefixes of so many axes have the projector's own bounds
  std::size_t schedule_depth = 0;  ///< longer ones leave only recomputation and overlap open
  std::size_t recompute_axis = 0;  ///< space.axes.size() when recomputation is not turned

  Plan(const search::Space& space_in, const training::Job& base_in, bool hypothetical)
      : DecisionPlan(space_in, base_in, hypothetical) {
    degree_depth = depth_of([](std::string_view name) {
      return !contains(kOperationAxes, name) && !contains(kScheduleAxes, name) && !relaxed_last(name);
    });
    recompute_axis = static_cast<std::size_t>(
        std::ranges::find(space.axes, "recompute", &search::Axis::name) - space.axes.begin());
    schedule_depth = depth_of([](std::string_view name) { return !relaxed_last(name); });
  }

 private:
  /// Axes to fix until all those with a name accepted by `wanted` are.
  template <typename Wanted>
  std::size_t depth_of(Wanted wanted) const {
    std::size_t depth = 0;
    for (std::size_t axis = 0; axis < space.axes.size(); ++axis) {
      if (wanted(space.axes[axis].name)) depth = axis + 1;
    }
    return depth;
  }
};

class ProjectionEvaluator : public search::Evaluator {
 public:
  explicit ProjectionEvaluator(const Plan& plan) : plan_(plan), applier_(plan.space, plan.base) {}

  bool admits(const search::Point& prefix) override {
    const training::Job& asked = applier_.apply(prefix);
    if (!prefix.empty() && plan_.idles(asked, prefix, prefix.size() - 1)) return false;
    for (std::size_t rule = plan_.rules.illegal; rule < plan_.decided_at.size(); ++rule) {
      if (plan_.duplicates[rule] && plan_.decided_at[rule] == prefix.size() &&
          plan_.rules.rules[rule].violated(asked)) {
        return false;
      }
    }
    const training::Job& job = applier_.normalised(plan_.rules);
    for (std::size_t rule = 0; rule < plan_.rules.illegal; ++rule) {
      if (plan_.decided_at[rule] == prefix.size() && !plan_.rules.skipped[rule] &&
          plan_.rules.rules[rule].violated(job)) {
        return false;
      }
    }
    return true;
  }

  double legal_completions(const search::Point& prefix) override {
    if (prefix.size() == plan_.space.axes.size()) return 1;
    std::string key(1, static_cast<char>(prefix.size()));
    for (const std::size_t axis : plan_.relevant[prefix.size()]) {
      key.append(reinterpret_cast<const char*>(&prefix[axis]), sizeof(prefix[axis]));
    }
    if (const auto known = completions_.find(key); known != completions_.end()) return known->second;
    double count = 0;
    search::Point child = prefix;
    child.push_back(0);
    for (std::size_t value = 0; value < plan_.space.axes[prefix.size()].values.size(); ++value) {
      child.back() = static_cast<std::uint16_t>(value);
      if (admits(child)) count += legal_completions(child);
    }
    completions_.emplace(std::move(key), count);
    return count;
  }

  double objective_bound(const search::Point& prefix) override {
    if (prefix.size() < plan_.degree_depth) return std::numeric_limits<double>::infinity();
    if (prefix.size() < plan_.schedule_depth) {
      double bound = search::kNothingFits;
      search::Point completed = prefix;
      bound_over_operations(completed, bound);
      return bound;
    }
    return relaxed_bound(prefix);
  }

  search::Outcome evaluate(const search::Point& point) override {
    applier_.apply(point);
    const training::Job& job = applier_.normalised(plan_.rules);
    const training::Score score = projector(job).score(job.layout);
    return {.objective = score.tokens_per_s_per_gpu, .peak_bytes = score.peak_bytes, .fits = score.fits};
  }

  bool count_violations(const search::Point& point, std::span<std::int64_t> counts) override {
    const training::Job& asked = applier_.apply(point);
    bool legal = true;
    for (std::size_t axis = 0; axis < point.size() && legal; ++axis) legal = !plan_.idles(asked, point, axis);
    if (!legal) ++counts.back();
    for (std::size_t rule = plan_.rules.illegal; rule < plan_.decided_at.size(); ++rule) {
      if (plan_.duplicates[rule] && plan_.rules.rules[rule].violated(asked)) {
        ++counts[rule];
        legal = false;
      }
    }
    const training::Job& job = applier_.normalised(plan_.rules);
    return plan_.rules.legal(job, counts.first(plan_.rules.illegal)) && legal;
  }

 private:
  /// The projector for the job's software: a chosen layout may bring switches along.
  training::Projector& projector(const training::Job& job) {
    const std::size_t variant =
        (job.software.router_fp32 ? 1U : 0U) + (job.software.gradient_accumulation_fusion ? 2U : 0U);
    if (!projectors_[variant]) projectors_[variant] = std::make_unique<training::Projector>(job);
    return *projectors_[variant];
  }

  double tokens_per_s_per_gpu(const parallel::Layout& layout, double step_s) const {
    return static_cast<double>(layout.global_batch) * static_cast<double>(layout.sequence_tokens) / step_s /
           layout.world;
  }

  /// The best bound over all values of the operation axes that `prefix` leaves open.
  void bound_over_operations(search::Point& prefix, double& bound) {
    std::size_t open = prefix.size();
    while (open < plan_.space.axes.size() && !contains(kOperationAxes, plan_.space.axes[open].name)) ++open;
    if (open >= plan_.schedule_depth || open >= plan_.space.axes.size()) {
      bound = std::max(bound, degree_bound(prefix));
      return;
    }
    const std::size_t fixed = prefix.size();
    prefix.resize(open + 1, 0);
    for (std::size_t value = 0; value < plan_.space.axes[open].values.size(); ++value) {
      prefix.back() = static_cast<std::uint16_t>(value);
      bound_over_operations(prefix, bound);
      prefix.resize(open + 1);
    }
    prefix.resize(fixed);
  }

  double degree_bound(const search::Point& prefix) {
    applier_.apply(prefix);
    const training::Job& job = applier_.normalised(plan_.rules);
    training::Projector& own = projector(job);
    parallel::Layout layout = job.layout;
    relax_overlap(prefix.size(), false, layout);
    if (own.peak_bytes_lower_bound(layout) > job.cluster->memory_limit_bytes()) return search::kNothingFits;
    return fastest(prefix.size(), layout, [&] { return own.step_s_lower_bound(layout); });
  }

  /// Schedule and split are fixed: what is open is set to what costs least time, and apart from that to what
  /// costs least memory.
  double relaxed_bound(const search::Point& prefix) {
    applier_.apply(prefix);
    const training::Job& job = applier_.normalised(plan_.rules);
    training::Projector& own = projector(job);
    parallel::Layout least = job.layout;
    relax_overlap(prefix.size(), false, least);
    const bool recompute_open =
        prefix.size() <= plan_.recompute_axis && plan_.recompute_axis < plan_.space.axes.size();
    if (recompute_open) recompute_all(least);
    const double limit_bytes = job.cluster->memory_limit_bytes();
    if (own.peak_bytes(least) > limit_bytes) {
      if (!recompute_open) return search::kNothingFits;
      least.recompute = {};
      if (own.peak_bytes(least) > limit_bytes) return search::kNothingFits;
    }
    parallel::Layout best = job.layout;
    if (recompute_open) best.recompute = {};
    return fastest(prefix.size(), best, [&] { return own.step_s(best); });
  }

  /// The largest objective of `layout` over the overlaps that lie beyond `depth`; `step_s` looks at `layout`.
  /// Every overlap only helps, but that of the exchange of tokens: it hides time on the network and launches
  /// more kernels, so both are tried.
  template <typename StepS>
  double fastest(std::size_t depth, parallel::Layout& layout, StepS step_s) const {
    relax_overlap(depth, true, layout);
    const double hidden = tokens_per_s_per_gpu(layout, step_s());
    const auto open = std::span(plan_.axis_bits).subspan(std::min(depth, plan_.axis_bits.size()));
    const bool exchange_open =
        std::ranges::any_of(open, [](std::uint32_t bits) { return (bits & backends::kKnobOverlapMoe) != 0; });
    if (!exchange_open) return hidden;
    layout.overlap.moe_dispatch = false;
    return std::max(hidden, tokens_per_s_per_gpu(layout, step_s()));
  }

  static void recompute_all(parallel::Layout& layout) {
    layout.recompute = {};
    layout.recompute.granularity = parallel::RecomputeGranularity::kFull;
    layout.recompute.method = parallel::RecomputeMethod::kUniform;
    layout.recompute.layers = 1;
  }

  /// Sets every overlap whose axis lies beyond `depth`.
  void relax_overlap(std::size_t depth, bool on, parallel::Layout& layout) const {
    for (std::size_t axis = depth; axis < plan_.axis_bits.size(); ++axis) {
      const std::uint32_t bits = plan_.axis_bits[axis];
      if ((bits & backends::kKnobOverlapGradientReduce) != 0) layout.overlap.gradient_reduce = on;
      if ((bits & backends::kKnobOverlapParameterGather) != 0) layout.overlap.parameter_gather = on;
      if ((bits & backends::kKnobOverlapTensorParallel) != 0) layout.overlap.tensor_parallel = on;
      if ((bits & backends::kKnobOverlapPointToPoint) != 0)
        layout.overlap.point_to_point = on && layout.vpp > 1;
      if ((bits & backends::kKnobOverlapMoe) != 0) layout.overlap.moe_dispatch = on;
    }
  }

  const Plan& plan_;
  PointApplier applier_;
  std::array<std::unique_ptr<training::Projector>, 4> projectors_;
  std::unordered_map<std::string, double> completions_;
};

class ProjectionEvaluators : public search::EvaluatorFactory {
 public:
  ProjectionEvaluators(const search::Space& space, const training::Job& base, bool hypothetical)
      : plan_(space, base, hypothetical) {}

  std::unique_ptr<search::Evaluator> make() const override {
    return std::make_unique<ProjectionEvaluator>(plan_);
  }
  std::size_t rules() const override { return plan_.rules.rules.size() + 1; }

 private:
  Plan plan_;
};

}  // namespace

std::unique_ptr<search::EvaluatorFactory> projection_evaluators(const search::Space& space,
                                                                const training::Job& base,
                                                                bool hypothetical) {
  return std::make_unique<ProjectionEvaluators>(space, base, hypothetical);
}

}  // namespace sextant::trials
