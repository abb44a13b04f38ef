#include "calibration/least_squares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sextant::calibration {
namespace {

using Vector = std::vector<double>;

/// A symmetric positive matrix, solved by Cholesky factors.
class Symmetric {
 public:
  explicit Symmetric(std::size_t n) : n_(n), values_(n * n, 0.0) {}
  double& at(std::size_t i, std::size_t j) { return values_[i * n_ + j]; }
  double at(std::size_t i, std::size_t j) const { return values_[i * n_ + j]; }

  /// Replaces the matrix by its lower factor. False when it is not positive.
  bool factor() {
    for (std::size_t j = 0; j < n_; ++j) {
      double diagonal = at(j, j);
      for (std::size_t k = 0; k < j; ++k) diagonal -= at(j, k) * at(j, k);
      if (!(diagonal > 0)) return false;
      at(j, j) = std::sqrt(diagonal);
      for (std::size_t i = j + 1; i < n_; ++i) {
        double value = at(i, j);
        for (std::size_t k = 0; k < j; ++k) value -= at(i, k) * at(j, k);
        at(i, j) = value / at(j, j);
      }
    }
    return true;
  }

  /// REQUIRES: factored.
  Vector solve(Vector b) const {
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t k = 0; k < i; ++k) b[i] -= at(i, k) * b[k];
      b[i] /= at(i, i);
    }
    for (std::size_t i = n_; i-- > 0;) {
      for (std::size_t k = i + 1; k < n_; ++k) b[i] -= at(k, i) * b[k];
      b[i] /= at(i, i);
    }
    return b;
  }

 private:
  std::size_t n_;
  Vector values_;
};

class Fit {
 public:
  Fit(const std::vector<Unknown>& unknowns, const ResidualModel& model, const LeastSquaresOptions& options)
      : unknowns_(unknowns), model_(model), options_(options), all_(model.count) {
    std::iota(all_.begin(), all_.end(), std::size_t{0});
  }

  Vector start() const {
    Vector x;
    for (const Unknown& u : unknowns_) x.push_back(std::clamp(u.mean, u.low, u.high));
    return x;
  }
  Vector residuals(const Vector& x) const { return model_.evaluate(x, all_); }

  double objective(const Vector& x, const Vector& r) const {
    const double s = options_.residual_scale;
    double sum = 0;
    for (const double value : r) sum += 2 * s * s * (std::sqrt(1 + value * value / (s * s)) - 1);
    // Residuals are judged on the scale s, priors on their own widths.
    double prior = 0;
    for (std::size_t j = 0; j < x.size(); ++j)
      prior += square((x[j] - unknowns_[j].mean) / unknowns_[j].width);
    return sum / (s * s) + prior;
  }

  /// Normal equations at x: curvature and downhill gradient.
  void linearise(const Vector& x, const Vector& r, Symmetric& curvature, Vector& gradient) const {
    const std::size_t n = x.size();
    std::vector<Vector> slopes(n, Vector(model_.count, 0.0));
    for (std::size_t j = 0; j < n; ++j) {
      Vector moved = x;
      const double step = x[j] + options_.step <= unknowns_[j].high ? options_.step : -options_.step;
      moved[j] += step;
      const auto& indices = model_.depends[j];
      const Vector there = model_.evaluate(moved, indices);
      for (std::size_t k = 0; k < indices.size(); ++k)
        slopes[j][indices[k]] = (there[k] - r[indices[k]]) / step;
    }
    const double s = options_.residual_scale;
    for (std::size_t i = 0; i < model_.count; ++i) {
      const double weight = 1.0 / (s * s * std::sqrt(1 + square(r[i] / s)));
      for (std::size_t a = 0; a < n; ++a) {
        if (slopes[a][i] == 0) continue;
        gradient[a] -= weight * slopes[a][i] * r[i];
        for (std::size_t b = 0; b <= a; ++b) curvature.at(a, b) += weight * slopes[a][i] * slopes[b][i];
      }
    }
    for (std::size_t j = 0; j < n; ++j) {
      curvature.at(j, j) += 1 / square(unknowns_[j].width);
      gradient[j] -= (x[j] - unknowns_[j].mean) / square(unknowns_[j].width);
    }
  }

  /// x + the damped step, inside the bounds; x itself when the damped curvature is not positive.
  Vector stepped(const Vector& x, Symmetric curvature, const Vector& gradient, double damping) const {
    for (std::size_t j = 0; j < x.size(); ++j) curvature.at(j, j) *= 1 + damping;
    if (!curvature.factor()) return x;
    Vector next = curvature.solve(gradient);
    for (std::size_t j = 0; j < x.size(); ++j) {
      next[j] = std::clamp(x[j] + next[j], unknowns_[j].low, unknowns_[j].high);
    }
    return next;
  }

 private:
  static double square(double value) { return value * value; }

  const std::vector<Unknown>& unknowns_;
  const ResidualModel& model_;
  const LeastSquaresOptions& options_;
  std::vector<std::size_t> all_;
};

Vector deviations(Symmetric curvature, std::size_t n) {
  Vector result(n, 0.0);
  if (!curvature.factor()) return result;
  for (std::size_t j = 0; j < n; ++j) {
    Vector unit(n, 0.0);
    unit[j] = 1;
    result[j] = std::sqrt(curvature.solve(unit)[j]);
  }
  return result;
}

}  // namespace

LeastSquaresResult fit_least_squares(const std::vector<Unknown>& unknowns, const ResidualModel& model,
                                     const LeastSquaresOptions& options) {
  const Fit fit(unknowns, model, options);
  const std::size_t n = unknowns.size();
  LeastSquaresResult result;
  result.x = fit.start();
  Vector r = fit.residuals(result.x);
  result.objective = result.start_objective = fit.objective(result.x, r);
  double damping = 1e-2;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    Symmetric curvature(n);
    Vector gradient(n, 0.0);
    fit.linearise(result.x, r, curvature, gradient);
    result.deviation = deviations(curvature, n);
    const double before = result.objective;
    for (int attempt = 0; attempt < 6; ++attempt) {
      const Vector next = fit.stepped(result.x, curvature, gradient, damping);
      Vector there = fit.residuals(next);
      const double objective = fit.objective(next, there);
      if (objective < result.objective) {
        result.x = next;
        result.objective = objective;
        r = std::move(there);
        damping = std::max(1e-4, damping / 4);
        break;
      }
      damping *= 5;
    }
    if (before - result.objective < 1e-4 * before) break;
  }
  return result;
}

}  // namespace sextant::calibration
