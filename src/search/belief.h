// What is believed of a space after some trials: for each point worth considering, what it should be worth,
// whether it should run, and how far it lies from anything seen.
//
// The whole legal space is judged by the likeliest corrections without strong interactions; of each pair of
// values of any two axes, the few points that look best by that are kept and judged under every hypothesis.
// An interaction of two axes cannot favour a point that is not among the best of its pair of values.
#pragma once

#include <Eigen/Dense>
#include <span>
#include <vector>

#include "search/correction_model.h"
#include "search/failure_model.h"
#include "search/memory_model.h"
#include "search/prior.h"
#include "search/trial.h"

namespace sextant::search {

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

/// One hypothesis's view of log(objective).
struct View {
  double weight = 0;
  double noise = 0;
  Eigen::VectorXd mean;
  Eigen::VectorXd deviation;
};

struct Belief {
  std::vector<std::size_t> places;  ///< indices into prior.legal, ascending; rows of everything below
  std::vector<Seen> seen;
  std::vector<View> views;
  Eigen::VectorXd mean;  ///< of log(objective), over all views
  Eigen::VectorXd deviation;
  Eigen::VectorXd runs;      ///< probability that a trial fits and does not fail
  Eigen::VectorXd surprise;  ///< probability that something about the point was never seen and is off
};

/// Belief at the points worth considering and at `also` (indices into prior.legal). `model` is of the same
/// prior and options. Throws base::UserError when a trial's point is not in the prior.
Belief believe(const Prior& prior, const CorrectionModel& model, const History& history,
               const BeliefOptions& options, std::span<const std::size_t> also = {});

}  // namespace sextant::search
