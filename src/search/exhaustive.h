// The exhaustive planner: the true optimum of the evaluator over the whole space, with a certificate.
//
// Two ways with the same answer. `score_all` evaluates every legal point and counts every violated rule; it
// is for spaces of up to some millions of points. `branch_and_bound` walks the tree of prefixes and leaves
// out subtrees whose bound cannot reach the K best found so far; it counts how many legal points it left out.
//
// Both are deterministic for any number of threads: work is cut into batches of fixed size, and what a batch
// may prune depends only on the batches before it and on itself in order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "search/evaluator.h"

namespace sextant::search {

struct Scored {
  Point point;
  Outcome outcome;
};

struct Progress {
  double done = 0;   ///< points scored or left out
  double total = 0;  ///< 0 when unknown
  double best_objective = 0;
};

struct Options {
  std::size_t keep = 10;  ///< the K best to return
  std::size_t threads = 1;
  /// Called from one thread at a time, now and then; may be empty.
  std::function<void(const Progress&)> progress{};
  /// Asked often, from any thread; may be empty. True ends the search soon: nothing is certified then.
  std::function<bool()> stop{};
  /// branch_and_bound: prefixes of this many axes are bounded first, best bound first.
  std::size_t branch_depth = 1;
};

struct Answer {
  std::vector<Scored> best;    ///< at most `keep` fitting points, best first
  std::vector<Scored> pareto;  ///< no evaluated fitting point is better in both objective and peak bytes
  /// score_all only: the best objective of a fitting point with each value of each axis; kNothingFits where
  /// none.
  std::vector<std::vector<double>> best_by_value;
  std::vector<std::int64_t> violated;  ///< points that violate each rule; score_all only
  double points = 0;
  double legal = 0;  ///< of a search that was stopped: those that it has counted
  double evaluated = 0;
  double fit = 0;              ///< of those evaluated
  double pruned_by_bound = 0;  ///< legal points left out: they cannot fit, or cannot reach the best
  bool certified = false;      ///< best is the optimum: evaluated + pruned_by_bound = legal
};

Answer score_all(const Space& space, const EvaluatorFactory& factory, const Options& options);
Answer branch_and_bound(const Space& space, const EvaluatorFactory& factory, const Options& options);

}  // namespace sextant::search
