// What measured peaks and runs out of memory say of every other point's chance to fit.
//
// Modelled is r = log(measured peak / projected peak): a bias common to all points, an error that goes with
// each value of each axis, and one of each point by itself, as a Gaussian process with the projection as
// prior mean. A measured peak shows r; a run that ended well without showing its peak says that r lies below
// what would have filled the memory; one that ran out of memory, that r lies above.
#pragma once

#include <Eigen/Dense>

#include "search/beliefs.h"
#include "search/prior.h"
#include "search/similarity.h"
#include "search/trial.h"

namespace sextant::search {

/// Posterior of log(measured peak / projected peak) at every legal point.
struct MemoryPosterior {
  Eigen::VectorXd mean;
  Eigen::VectorXd deviation;  ///< of the next measurement
};

/// `points` is the prior's.
MemoryPosterior memory_posterior(const Prior& prior, const PointTable& points, const History& history,
                                 const MemoryScales& belief = {});

/// Probability that each legal point fits. 1 where the prior has no peak or no limit.
Eigen::VectorXd probability_of_fitting(const Prior& prior, const MemoryPosterior& posterior);

}  // namespace sextant::search
