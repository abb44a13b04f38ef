// Exact regression with a Gaussian process, once the covariances are known.
//
// Formulas: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1 (mean,
// variance and log evidence through one Cholesky factor). Cost: n³/3 to build, n² a predicted variance.
#pragma once

#include <Eigen/Dense>

namespace sextant::search {

class GaussianProcess {
 public:
  /// `covariance`: of the observations, noise included; symmetric and positive definite. `observed`: their
  /// values less the prior mean.
  GaussianProcess(const Eigen::MatrixXd& covariance, const Eigen::VectorXd& observed);

  /// Logarithm of the density of the observations.
  double log_evidence() const { return log_evidence_; }

  /// The posterior mean at a place is the scalar product of these with its covariances to the observations.
  const Eigen::VectorXd& weights() const { return weights_; }

  /// Posterior means at the rows of `cross` (places × observations).
  Eigen::VectorXd means(const Eigen::MatrixXd& cross) const { return cross * weights_; }

  /// How much the observations take off the prior variance at each row of `cross`.
  Eigen::VectorXd explained_variances(const Eigen::MatrixXd& cross) const;

 private:
  Eigen::LLT<Eigen::MatrixXd> factor_;
  Eigen::VectorXd weights_;
  double log_evidence_ = 0;
};

}  // namespace sextant::search
