// When a tree search over layouts can judge what: which axes must be fixed before a rule may be asked, which
// points are duplicates of others, and what the number of legal completions of a prefix depends on.
//
// A backend's rules read few knobs each (backends/rule_knobs.h), so a rule is asked as soon as the axes it
// reads are fixed, once, and never again below. Normalised rules change what was asked; a point that one of
// them changes on an axis of this space equals another point of it, so it is left out as a duplicate and
// counted under the rule's name. In the same way a knob that has nothing to act on (tensor-parallel overlap
// without tensor parallelism) keeps its first value. Two prefixes that agree on the axes which undecided
// rules read have the same number of legal completions. Built once a search; read-only and shared between
// threads afterwards.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "backends/rules.h"
#include "search/space.h"
#include "training/job.h"

namespace sextant::trials {

/// A knob with nothing to act on: a point with another than the axis's first value equals one with the first.
struct IdleKnob {
  std::string_view axis;
  std::uint32_t reads;  ///< backends::KnobBit
  bool (*idle)(const training::Job& job);
  bool any_value = false;  ///< the first value may be needless too
};

struct DecisionPlan {
  /// `hypothetical` admits schedules that the backend cannot launch. Both references must outlive the plan.
  DecisionPlan(const search::Space& space, const training::Job& base, bool hypothetical);

  const search::Space& space;
  const training::Job& base;
  backends::RuleSet rules;
  std::vector<std::uint32_t> axis_bits;  ///< by axis: the knobs that fixing it settles
  std::vector<const IdleKnob*> idle;     ///< by axis; null for most
  std::vector<std::size_t> decided_at;   ///< by rule: axes that must be fixed before it is asked, at least 1
  std::vector<bool> duplicates;          ///< by rule: normalised, and changes an axis of this space
  std::vector<std::vector<std::size_t>> relevant;  ///< by depth: fixed axes that undecided rules read

  /// The axis's value in `point` does nothing in `job`, the point applied as asked.
  bool idles(const training::Job& job, const search::Point& point, std::size_t axis) const;

 private:
  std::uint32_t reads(std::size_t rule) const;
  std::uint32_t turned_by_own_axis() const;
  void find_decision_depths();
  void find_relevant_axes();
};

}  // namespace sextant::trials
