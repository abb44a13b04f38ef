// Which values never work, learnt from few failures.
//
// A trial that failed, timed out or gave no numbers has a cause: a value of an axis that never works here, a
// pair of values that never works together, or chance. A trial that ran clears all values and pairs of its
// point. What is left uncleared shares the blame, so one failure after a few successes often points at one
// value.
//
// Running out of memory is no failure in this sense (memory_model.h), and trials that say nothing of their
// point are left out.
#pragma once

#include <vector>

#include "search/beliefs.h"
#include "search/space.h"
#include "search/trial.h"

namespace sextant::search {

class FailureModel {
 public:
  FailureModel(const Space& space, const History& history, const FailureBelief& belief = {});

  /// Probability that the next trial of the point does not fail, memory apart.
  double works(const Point& point) const;

  /// Probability that the value by itself never works.
  double never_works(std::size_t axis, std::size_t value) const;

 private:
  /// Values and pairs of values, numbered; `items_of` lists those of a point.
  std::vector<std::size_t> items_of(const Point& point) const;

  double log_chance_;                     // log(1 - chance)
  std::vector<std::size_t> axes_;         // with two values or more
  std::vector<std::size_t> first_value_;  // by axis: the item of its first value
  std::vector<std::size_t> first_pair_;   // by pair of axes_: the item of its first pair of values
  std::vector<std::size_t> counts_;       // by axis: values
  std::vector<double> log_works_;         // by item: log of the probability that it works
};

}  // namespace sextant::search
