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

#include "search/beliefs.h"
#include "search/correction_model.h"
#include "search/failure_model.h"
#include "search/memory_model.h"
#include "search/prior.h"
#include "search/trial.h"

namespace sextant::search {

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
