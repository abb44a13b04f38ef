// How measurements correct the projection, everywhere at once.
//
// What is modelled is f = log(measured / projected), so that the projection is the prior mean and a
// correction is a factor. A Gaussian process over the axes sums parts of different kinds:
//
//   f(x) = bias + Σ_a main_a(x_a) + Σ_{a<b} weak_ab(x_a, x_b) + Σ_{ab in S} strong_ab(x_a, x_b) + residual(x)
//
// `bias` is common to all points; main_a is an error that goes with a value of one axis; weak and strong ones
// go with pairs of values. Which pairs of axes interact strongly, the *structure* S, is not known; a few do,
// most do not. So the model is an average over structures, each weighted by how well it explains what was
// measured.
//
// The model is cheap where trials are not: thousands of structures and scales are weighed a decision.
#pragma once

#include <Eigen/Dense>
#include <map>
#include <span>
#include <vector>

#include "search/axis_kernel.h"
#include "search/beliefs.h"
#include "search/prior.h"
#include "search/similarity.h"

namespace sextant::search {

/// Standard deviations of the parts, in units of f (0.01: one per cent), and the length of the axis kernels.
struct CorrectionScales {
  double bias = 0.15;
  double main = 0.02;
  double weak = 0.005;
  double strong = 0.15;
  double residual = 0.005;
  double noise = 0.012;  ///< of one measurement
  double length = 0;     ///< see AxisKernels
};

struct Hypothesis {
  Structure structure;
  CorrectionScales scales;
  double weight = 0;
};

/// One measurement: a legal point, and log(measured / projected) there.
struct Correction {
  std::size_t candidate = 0;
  double log_ratio = 0;
};

/// What one hypothesis says of f at some places.
struct CorrectionPosterior {
  Hypothesis hypothesis;
  Eigen::VectorXd mean;
  Eigen::VectorXd deviation;
};

class CorrectionModel {
 public:
  /// `prior` must outlive the model.
  CorrectionModel(const Prior& prior, CorrectionPrior belief);

  /// The hypotheses that together hold nearly all of the weight, heaviest first; weights sum to 1.
  std::vector<Hypothesis> weigh(std::span<const Correction> measured) const;

  /// Posterior of each hypothesis at `places` (indices into prior.legal).
  std::vector<CorrectionPosterior> predict(std::span<const Correction> measured,
                                           std::span<const Hypothesis> hypotheses,
                                           std::span<const std::size_t> places) const;

  /// Axes with two values or more.
  const std::vector<std::size_t>& axes() const { return points_.axes(); }
  const PointTable& points() const { return points_; }

  const AxisKernels& kernels(double length) const;
  const CorrectionPrior& belief() const { return belief_; }

 private:
  /// The similarity with that length out of `known`, made if it is not there.
  const Similarity& similarity_of(std::map<double, Similarity>& known, double length,
                                  std::span<const std::size_t> places,
                                  std::span<const std::size_t> trials) const;

  CorrectionPrior belief_;
  PointTable points_;
  std::vector<AxisKernels> kernels_;  // by length
};

/// Covariance of f between places and trials, without noise.
Eigen::MatrixXd correction_covariance(const Similarity& similarity, const CorrectionScales& scales,
                                      const Structure& structure);

/// Its value at equal points.
double correction_variance(std::size_t axes, const CorrectionScales& scales, const Structure& structure);

}  // namespace sextant::search
