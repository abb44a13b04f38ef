// Clusters that exist in numbers only, to test searches on.
//
// The hidden truth of a virtual cluster is the projection plus what the projection does not know: two axes
// interact by up to ±20 %, memory is 8 % higher, one value of one axis never works, and measurements have a
// noise of 2 %. Which axes, which pairs of values and which value is drawn from the cluster's number. The
// noise of a trial is a function of (seed, point, repeat) alone: planners that try the same point in another
// order see the same figure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "search/beliefs.h"
#include "search/prior.h"
#include "search/run_trials.h"

namespace sextant::benchmarks {

/// How an interaction depends on the values of its two axes.
enum class Shape {
  kScattered,  ///< each pair of values gains or loses 20 %, by the toss of a coin
  kUniform,    ///< each pair of values is off by a share drawn between -20 % and +20 %
  kSmooth,     ///< ±20 % at the corners, in proportion between them: a saddle over the order of the values
  kBlocks,     ///< both axes are cut in two; equal halves gain 20 % and unequal ones lose it, or the reverse
  kOneGains,   ///< one pair of values gains 20 %
  kOneLoses,   ///< the pair of values of the projected best loses 20 %
};

inline constexpr std::array kShapes{Shape::kScattered, Shape::kUniform,  Shape::kSmooth,
                                    Shape::kBlocks,    Shape::kOneGains, Shape::kOneLoses};

std::string_view word(Shape shape);

/// What a virtual cluster does beyond its interaction.
struct VirtualTruth {
  double memory_factor = 1.08;  ///< true peak / projected peak
  double noise = 0.02;          ///< of one measurement, as a share
  double price_s = 1500;        ///< of one trial
};

class VirtualCluster : public search::TrialEvaluator {
 public:
  /// A cluster with an interaction. `prior` must outlive it.
  VirtualCluster(const search::Prior& prior, Shape shape, std::uint64_t number, std::uint64_t seed,
                 const VirtualTruth& truth = {});
  /// A cluster where legal[i] is worth its projection times factors[i]. All values work.
  VirtualCluster(const search::Prior& prior, const std::vector<double>& factors, std::uint64_t seed,
                 const VirtualTruth& truth = {});

  search::TrialResult run(const search::TrialRequest& request, const search::StopRequest& stop) override;

  /// Objective of a legal point without noise; 0 where it does not run.
  double truth(std::size_t candidate) const { return truth_[candidate]; }
  double truth(const search::Point& point) const { return truth_[*prior_.find(point)]; }
  /// The largest truth.
  double optimum() const { return optimum_; }
  /// The axes that interact.
  search::AxisPair interacting() const { return interacting_; }
  /// "pp × schedule scattered, vpp=4 never works"
  const std::string& description() const { return description_; }

 private:
  void settle(const std::vector<double>& factors);

  const search::Prior& prior_;
  std::uint64_t seed_;
  VirtualTruth rules_;
  std::vector<bool> broken_;
  std::vector<double> truth_;
  double optimum_ = 0;
  search::AxisPair interacting_;
  std::string description_;
};

}  // namespace sextant::benchmarks
