// Robust non-linear least squares with priors, small and dense.
//
// Minimises Σ ρ(r_i(x)) + Σ ((x_j − m_j) / w_j)² with ρ(r) = 2 s² (√(1 + r²/s²) − 1), quadratic for residuals
// well below s and linear above, so that a row that no model explains pulls no harder than one at s.
// Levenberg-Marquardt on the Gauss-Newton approximation with weights ρ'(r)/2r (iteratively reweighted),
// finite differences for the Jacobian. For tens of unknowns and a thousand residuals; the work is in
// evaluating residuals.
#pragma once

#include <functional>
#include <vector>

namespace sextant::calibration {

struct Unknown {
  double mean = 0;   ///< prior mean, and the start
  double width = 1;  ///< prior standard deviation
  double low = 0, high = 0;
};

struct LeastSquaresOptions {
  double residual_scale = 0.06;  ///< s
  double step = 0.02;            ///< of the finite differences
  int iterations = 12;
};

struct LeastSquaresResult {
  std::vector<double> x;
  std::vector<double> deviation;  ///< standard deviation of each, from the curvature at x
  double objective = 0;
  double start_objective = 0;
};

/// `residuals(x)` gives all r_i. `changed(j)` tells which residuals depend on unknown j (indices), so that a
/// difference evaluates only these through `some_residuals(x, indices)`.
struct ResidualModel {
  std::size_t count = 0;
  std::function<std::vector<double>(const std::vector<double>& x, const std::vector<std::size_t>& indices)>
      evaluate;
  std::vector<std::vector<std::size_t>> depends;  ///< per unknown, the residuals that it moves
};

LeastSquaresResult fit_least_squares(const std::vector<Unknown>& unknowns, const ResidualModel& model,
                                     const LeastSquaresOptions& options);

}  // namespace sextant::calibration
