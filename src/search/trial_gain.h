// What a trial of each point should gain.
#pragma once

#include <Eigen/Dense>

#include "search/belief.h"

namespace sextant::search {

/// Expected improvement of log(objective) over the best that ran, times the probability of running, for every
/// row of the belief; 0 for points that did not run. For a point that ran it is what knowing its worth better
/// may change about which point is best: the expected gain of a repeat. While nothing has run, the expected
/// objective instead (then any result is a gain, and the rows compare with each other only).
Eigen::VectorXd trial_gains(const Belief& belief, const Surprise& surprise);

/// True when some point ran.
bool anything_ran(const Belief& belief);

}  // namespace sextant::search
