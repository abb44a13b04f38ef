// What the owner of a space knows about its points: what is legal, what cannot be good, and what a point is
// worth.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "search/space.h"

namespace sextant::search {

/// What evaluating a point gave. Larger objectives are better.
struct Outcome {
  double objective = 0;
  double peak_bytes = 0;  ///< second criterion of the Pareto front: smaller is better
  bool fits = false;      ///< points that do not fit can never win
};

inline constexpr double kNothingFits = -std::numeric_limits<double>::infinity();

/// One instance a thread (instances share only what is immutable). All functions are deterministic.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  /// False when no completion of `prefix` is legal. Called once for each prefix whose shorter prefixes
  /// passed; for a whole point the answer is final.
  virtual bool admits(const Point& prefix) = 0;

  /// How many legal points complete an admitted `prefix`.
  virtual double legal_completions(const Point& prefix) = 0;

  /// No legal completion of `prefix` has a larger objective; kNothingFits when none of them fits.
  virtual double objective_bound(const Point& prefix) = 0;

  virtual Outcome evaluate(const Point& point) = 0;

  /// Adds to `counts[i]` every rule i that the whole point violates; true when it violates none.
  virtual bool count_violations(const Point& point, std::span<std::int64_t> counts) = 0;
};

/// Makes an instance for one more thread.
class EvaluatorFactory {
 public:
  virtual ~EvaluatorFactory() = default;
  virtual std::unique_ptr<Evaluator> make() const = 0;
  /// Length of the `counts` that count_violations expects.
  virtual std::size_t rules() const = 0;
};

}  // namespace sextant::search
