// Searches run against each other on virtual clusters, and how far from the optimum each would have ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "case_study.h"
#include "virtual_cluster.h"

namespace sextant::benchmarks {

enum class Contender {
  kSurrogate,
  kAfterSweep,  ///< the surrogate after a sweep of 6 trials from the workload's own layout, as `--planner
                ///< auto`
  kTold,  ///< the surrogate, told which two axes interact, how strongly, and the noise: what trials can show
  kProjectedOrder,
  kRandom,
  kParzen,
  kAnnealing,
  // The surrogate with a proposer beside it (advisors.h).
  kWithExpert,
  kWithMediocre,
  kWithAdversary,
  kWithFailing,
};

std::string_view word(Contender contender);

/// One cluster and the noise that trials on it have.
struct Match {
  Shape shape = Shape::kScattered;
  std::uint64_t number = 0;  ///< of the cluster
  std::uint64_t seed = 0;    ///< of noise and of planners that draw
};

struct Course {
  /// After each trial: 1 - worth / optimum of the point that would be recommended, by its true worth.
  std::vector<double> recommended;
  /// The same of the best point tried so far, as if one could see its true worth.
  std::vector<double> visited;
  double seconds = 0;  ///< that the planner took
};

/// One search of `trials` trials. `log` (may be null) receives a line a trial.
Course play(const CaseStudy& study, Contender contender, const Match& match, std::size_t trials,
            std::string* log = nullptr);

/// Table rows of what the courses of one planner reached.
struct Standings {
  std::string name;
  std::vector<Course> courses;
};

/// The first trial after which the regret is at most `within`; one more than there are trials when it never
/// is.
std::size_t first_within(const std::vector<double>& regret, double within);
/// The first trial from which on it stays so.
std::size_t kept_within(const std::vector<double>& regret, double within);

/// A table: a row for each of `standings`.
std::string table(const std::vector<Standings>& standings, std::size_t trials);

}  // namespace sextant::benchmarks
