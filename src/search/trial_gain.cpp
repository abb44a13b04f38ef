// Under each hypothesis log(objective) is normal. One measurement with noise s moves the mean of a place with
// deviation d by a normal amount of deviation d²/√(d² + s²): the improvement that counts is that of the mean,
// not of the value behind the noise (the knowledge gradient of Frazier, Powell and Dayanik 2008, without the
// correlations). So points seen and unseen compete on one scale, and a repeat is chosen when which of two is
// better matters more than anything new. Gains of hypotheses are averaged, as expectations may be; a surprise
// is one more hypothesis at places where something was never seen.
#include "search/trial_gain.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "search/normal.h"

namespace sextant::search {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr double kNone = -std::numeric_limits<double>::infinity();

/// The largest and second largest mean of what ran.
struct Leaders2 {
  double first = kNone;
  double second = kNone;
};

Leaders2 leaders(const Belief& belief, const View& view) {
  Leaders2 result;
  for (Index row = 0; row < view.mean.size(); ++row) {
    if (belief.seen[static_cast<std::size_t>(row)] != Seen::kRan) continue;
    const double mean = view.mean[row];
    if (mean > result.first) {
      result.second = result.first;
      result.first = mean;
    } else {
      result.second = std::max(result.second, mean);
    }
  }
  return result;
}

/// Gain of a place that has not been seen.
double gain_of_new(double lead, double change, double surprise, const Surprise& size) {
  const double usual = expected_gain(lead, change);
  if (surprise <= 0) return usual;
  return (1 - surprise) * usual + surprise * expected_gain(lead, std::hypot(change, size.deviation));
}

double gain_of_repeat(double mean, double change, const Leaders2& best) {
  const double rival = mean == best.first ? best.second : best.first;
  return rival == kNone ? 0 : expected_gain(-std::abs(mean - rival), change);
}

}  // namespace

bool anything_ran(const Belief& belief) {
  return std::ranges::find(belief.seen, Seen::kRan) != belief.seen.end();
}

VectorXd trial_gains(const Belief& belief, const Surprise& surprise) {
  VectorXd gains = VectorXd::Zero(static_cast<Index>(belief.places.size()));
  for (const View& view : belief.views) {
    const Leaders2 best = leaders(belief, view);
    for (Index row = 0; row < gains.size(); ++row) {
      const Seen seen = belief.seen[static_cast<std::size_t>(row)];
      if (seen == Seen::kDidNotRun) continue;
      const double deviation = view.deviation[row];
      const double change = deviation * deviation / std::hypot(deviation, view.noise);
      double gain = std::exp(view.mean[row]);
      if (best.first != kNone) {
        gain = seen == Seen::kRan
                   ? gain_of_repeat(view.mean[row], change, best)
                   : gain_of_new(view.mean[row] - best.first, change, belief.surprise[row], surprise);
      }
      gains[row] += view.weight * gain;
    }
  }
  return gains.cwiseProduct(belief.runs);
}

}  // namespace sextant::search
