#include "trials/decision_plan.h"

#include <algorithm>
#include <array>

#include "backends/rule_knobs.h"

namespace sextant::trials {
namespace {

constexpr std::string_view kLaunchRule = "schedule-launchable";

/// The knobs that fixing an axis settles, derived ones included.
std::uint32_t bits_of_axis(const std::string& axis, const parallel::Layout& base) {
  std::uint32_t bits = backends::knob_bit(axis);
  if (axis == "tp") bits |= backends::kKnobSequenceParallel;
  const bool own_split = !(base.split == parallel::StageSplit{}) || base.microbatch_group > 0;
  if ((axis == "pp" || axis == "vpp") && own_split) bits |= backends::kKnobSplit | backends::kKnobGroup;
  return bits;
}

/// First and last counts that deal as fewer of them would: one that equals the share it would get anyway.
bool needless_split(const training::Job& job) {
  const std::int64_t layers = job.model->layers();
  const std::int64_t pp = job.layout.pp;
  const std::int64_t first = job.layout.split.first_layers;
  const std::int64_t last = job.layout.split.last_layers;
  if (first == 0 && last == 0) return false;
  if (pp == 1) return true;
  if (first == 0 || last == 0) return (first + last) * pp == layers;
  return first * (pp - 1) == layers - last || last * (pp - 1) == layers - first;
}
bool one_replica(const training::Job& job) { return job.layout.tp * job.layout.pp == job.layout.world; }

constexpr std::array kIdleKnobs{
    IdleKnob{"overlap_tp", backends::kKnobTp, [](const training::Job& job) { return job.layout.tp == 1; }},
    IdleKnob{"overlap_moe", backends::kKnobEp, [](const training::Job& job) { return job.layout.ep == 1; }},
    IdleKnob{"overlap_p2p", backends::kKnobPp, [](const training::Job& job) { return job.layout.pp == 1; }},
    IdleKnob{"overlap_grad_reduce", backends::kKnobTp | backends::kKnobPp, one_replica},
    IdleKnob{"overlap_param_gather", backends::kKnobTp | backends::kKnobPp, one_replica},
    IdleKnob{"dispatch", backends::kKnobEp | backends::kKnobEtp,
             [](const training::Job& job) { return job.layout.ep * job.layout.etp == 1; }},
    IdleKnob{"last_layers", backends::kKnobPp | backends::kKnobSplit, needless_split, true},
};

const IdleKnob* idle_of(std::string_view axis) {
  const auto* place = std::ranges::find(kIdleKnobs, axis, &IdleKnob::axis);
  return place == kIdleKnobs.end() ? nullptr : place;
}

}  // namespace

DecisionPlan::DecisionPlan(const search::Space& space_in, const training::Job& base_in, bool hypothetical)
    : space(space_in), base(base_in), rules(backends::rule_set(base.backend, base.backend_version)) {
  if (hypothetical) rules = rules.without(kLaunchRule);
  for (const search::Axis& axis : space.axes) {
    axis_bits.push_back(bits_of_axis(axis.name, base.layout));
    idle.push_back(idle_of(axis.name));
  }
  find_decision_depths();
  find_relevant_axes();
}

bool DecisionPlan::idles(const training::Job& job, const search::Point& point, std::size_t axis) const {
  const IdleKnob* knob = idle[axis];
  return knob != nullptr && (point[axis] != 0 || knob->any_value) && knob->idle(job);
}

/// Knobs that a rule's verdict depends on once normalised rules have had their say.
std::uint32_t DecisionPlan::reads(std::size_t rule) const {
  std::uint32_t bits = backends::knobs_read(rules.rules[rule].name);
  for (std::size_t round = 0; round < 2; ++round) {  // a change may depend on another change
    for (std::size_t i = 0; i < rules.changes.size(); ++i) {
      const std::string_view name = rules.rules[rules.illegal + i].name;
      if ((backends::knobs_changed(name) & bits) != 0) bits |= backends::knobs_read(name);
    }
  }
  return bits;
}

/// Knobs that an axis turns directly (sequence parallelism follows tp and is usually no axis of its own).
std::uint32_t DecisionPlan::turned_by_own_axis() const {
  std::uint32_t bits = 0;
  for (const search::Axis& axis : space.axes) bits |= backends::knob_bit(axis.name);
  return bits & ~static_cast<std::uint32_t>(backends::kKnobOther);
}

void DecisionPlan::find_decision_depths() {
  for (std::size_t rule = 0; rule < rules.illegal + rules.changes.size(); ++rule) {
    std::size_t depth = 1;  // prefixes start with one axis: what no axis decides is asked there
    const std::uint32_t bits = reads(rule);
    for (std::size_t axis = 0; axis < axis_bits.size(); ++axis) {
      if ((axis_bits[axis] & bits) != 0) depth = axis + 1;
    }
    decided_at.push_back(depth);
    duplicates.push_back(rule >= rules.illegal &&
                         (backends::knobs_changed(rules.rules[rule].name) & turned_by_own_axis()) != 0);
  }
}

void DecisionPlan::find_relevant_axes() {
  for (std::size_t depth = 0; depth <= space.axes.size(); ++depth) {
    std::uint32_t bits = 0;
    for (std::size_t rule = 0; rule < decided_at.size(); ++rule) {
      if (decided_at[rule] > depth) bits |= reads(rule);
    }
    for (std::size_t axis = depth; axis < space.axes.size(); ++axis) {
      if (idle[axis] != nullptr) bits |= idle[axis]->reads;
    }
    relevant.emplace_back();
    for (std::size_t axis = 0; axis < depth; ++axis) {
      if ((axis_bits[axis] & bits) != 0) relevant.back().push_back(axis);
    }
  }
}

}  // namespace sextant::trials
