#include "search/gaussian_process.h"

#include <cmath>
#include <numbers>

#include "base/check.h"

namespace sextant::search {

GaussianProcess::GaussianProcess(const Eigen::MatrixXd& covariance, const Eigen::VectorXd& observed)
    : factor_(covariance) {
  SEXTANT_CHECK(factor_.info() == Eigen::Success);
  weights_ = factor_.solve(observed);
  const double half_log_determinant = factor_.matrixLLT().diagonal().array().log().sum();
  log_evidence_ = -0.5 * observed.dot(weights_) - half_log_determinant -
                  0.5 * static_cast<double>(observed.size()) * std::log(2 * std::numbers::pi);
}

Eigen::VectorXd GaussianProcess::explained_variances(const Eigen::MatrixXd& cross) const {
  return factor_.matrixL().solve(cross.transpose()).colwise().squaredNorm();
}

}  // namespace sextant::search
