// What a search believes before its first trial. Plain numbers, for those who set them; the models that use
// them are correction_model.h, memory_model.h, failure_model.h and belief.h.
#pragma once

#include <compare>
#include <cstddef>
#include <vector>

namespace sextant::search {

/// Two axes, the smaller first.
struct AxisPair {
  std::size_t a = 0;
  std::size_t b = 0;
  auto operator<=>(const AxisPair&) const = default;
};

/// Pairs of axes that interact strongly, in ascending order.
using Structure = std::vector<AxisPair>;

/// A scale that is not known: its values to choose from, and the logarithm of their prior weights.
struct ScaleChoice {
  std::vector<double> values;
  std::vector<double> log_prior;
};

/// What corrections of the projection may look like (correction_model.h).
struct CorrectionPrior {
  double bias = 0.15;
  ScaleChoice main;
  ScaleChoice weak;
  ScaleChoice noise;
  ScaleChoice length;
  ScaleChoice strong;
  double expected_strong = 2;     ///< pairs of axes that interact strongly, on average
  std::size_t most_strong = 2;    ///< at most
  std::vector<Structure> only{};  ///< not empty: these structures and no other
};

CorrectionPrior default_correction_prior();

/// Standard deviations of the parts of log(measured peak / projected peak).
///
/// Projected peaks are wrong by 7 % on average over 200 published runs, and by far less between layouts of
/// one model on one cluster (docs/memory_accuracy.md): most of the error is common.
struct MemoryScales {
  double bias = 0.08;
  double main = 0.015;
  double residual = 0.015;
  double noise = 0.003;  ///< of one measured peak
  double length = 1.5;   ///< of the axis kernels
};

/// How often values, pairs of values and single trials fail.
///
/// A space of 45 values then holds about one that never works, and with about 1,000 pairs of values one pair
/// in every second space; a framework's release notes and issue lists name such switches and combinations
/// regularly. One trial in 30 fails by chance, as on clusters where jobs of a few minutes are restarted now
/// and then.
struct FailureBelief {
  double value = 0.02;   ///< probability that a value of an axis never works
  double pair = 0.0005;  ///< that a pair of values never works
  double chance = 0.03;  ///< that a trial fails for no cause in its point
};

enum class Seen : char {
  kNo,
  kRan,        ///< every trial that speaks of the point ran
  kDidNotRun,  ///< some trial did not: never proposed again, never recommended
};

/// Chance that a pair of values behaves otherwise than the projection and everything measured elsewhere say.
///
/// The correction model takes interactions for alike within a pair of axes, and grows sure of itself where it
/// has looked. What has not been looked at keeps this much doubt: one pair of values in a hundred is off by
/// 15 %, about the largest errors of the projection between layouts of one model (docs/accuracy.md).
struct Surprise {
  double probability = 0.01;
  double deviation = 0.15;
};

struct BeliefOptions {
  CorrectionPrior correction = default_correction_prior();
  MemoryScales memory{};
  FailureBelief failures{};
  Surprise surprise{};
  bool allow_borderline = false;    ///< points that ran in some trials and not in others count as having run
  std::size_t points_per_pair = 2;  ///< considered of each pair of values of two axes
};

}  // namespace sextant::search
