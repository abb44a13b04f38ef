// How far the projection is from what was measured in one run: a property of the projection on this machine,
// and what it means for layouts that were not run.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "search/prior.h"
#include "search/trial.h"

namespace sextant::tuner {

/// measured / projected over some trials: the geometric mean with its 90 % interval.
struct BiasFactor {
  std::size_t trials = 0;
  double factor = 1;
  double low = 1;  ///< Student's t over the trials; with one trial low and high are not known: 0 and infinity
  double high = 1;
  double spread = 0;  ///< standard deviation of ln(measured / projected); 0 with one trial
};

/// The bias of trials with one value of one axis, relative to all others.
struct AxisBias {
  std::size_t axis = 0;
  std::size_t value = 0;
  BiasFactor bias;
};

/// An axis whose values explain errors: the share of the spread (R squared, adjusted for the number of
/// values) that is gone once each of its values has a bias of its own.
struct ExplainingAxis {
  std::size_t axis = 0;
  double share = 0;
  std::vector<AxisBias> values{};
};

/// Two axes that together shift the result.
struct ExplainingPair {
  std::size_t first = 0;
  std::size_t second = 0;
  double probability = 0;
};

struct Bias {
  BiasFactor overall;
  std::vector<ExplainingAxis> axes;   ///< those that explain anything, most first
  std::vector<ExplainingPair> pairs;  ///< those more likely than not, most likely first
};

/// A projection after what was learnt: the median and the 90 % interval of a noise-free measurement.
struct Corrected {
  std::size_t candidate = 0;  ///< index into prior.legal
  double objective = 0;
  double low = 0;
  double high = 0;
};

/// From all trials that ran; empty history gives no bias.
Bias projection_bias(const search::Prior& prior, const search::History& history);

/// Corrected projections of some candidates, in their order, by the model that the surrogate planner uses
/// (search/correction_model.h).
std::vector<Corrected> corrected(const search::Prior& prior, const search::History& history,
                                 std::span<const std::size_t> candidates);

}  // namespace sextant::tuner
