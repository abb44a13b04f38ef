// What decides which trial comes next.
//
// The invariant on which resuming and replaying rest: a decision is a pure function of the planner's inputs
// (prior, options, seed) and of the history of finished trials. A planner keeps no state between calls that
// could change an answer; caches are allowed. So a search is resumed by handing over the recorded history,
// and replayed by running it against the recorded results: the same decisions follow, byte for byte.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "search/trial.h"

namespace sextant::search {

/// What a search may spend. Prices are those recorded in the history, so that a replay stops where the search
/// stopped.
struct TrialBudget {
  std::size_t trials = 30;                                         ///< of any state
  double price_s = std::numeric_limits<double>::infinity();        ///< all trials together
  double price_money = std::numeric_limits<double>::infinity();    ///< all trials together
  double trial_limit_s = std::numeric_limits<double>::infinity();  ///< one trial
};

/// What a planner expects of a point.
struct Prediction {
  double objective = 0;  ///< median
  double low = 0;        ///< 90 % interval of a measurement-free objective
  double high = 0;
  double probability_runs = 1;  ///< it fits, and nothing breaks
  double gain = 0;              ///< expected improvement over the best so far, as a share of it
};

enum class DecisionKind { kTrial, kStop };

struct Decision {
  DecisionKind kind = DecisionKind::kTrial;
  std::string planner;     ///< "sweep", "surrogate", …
  Point point;             ///< kTrial: a legal point
  std::size_t repeat = 0;  ///< kTrial: earlier trials of the same point
  std::string why;         ///< one sentence for people
  Prediction predicted;    ///< kTrial
};

class Planner {
 public:
  virtual ~Planner() = default;

  virtual std::string_view name() const = 0;

  /// The decision that follows `history`. Pure (see above); not thread-safe. kStop when nothing is left that
  /// is worth a trial. `budget` is the whole budget, not what is left of it.
  virtual Decision next(const History& history, const TrialBudget& budget) = 0;
};

}  // namespace sextant::search
