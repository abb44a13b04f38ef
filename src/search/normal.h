// The normal distribution, and what may be gained under it.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sextant::search {

inline double normal_density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); }
inline double normal_below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

/// E[max(X, 0)] for X normal with that mean and deviation: expected improvement, when the mean is that over
/// the best so far (Mockus 1978; Jones, Schonlau and Welch 1998, equation 15).
inline double expected_gain(double mean, double deviation) {
  if (deviation <= 0) return std::max(mean, 0.0);
  const double u = mean / deviation;
  if (u < -8) return 0;  // below 1e-16 deviations
  return std::max(mean * normal_below(u) + deviation * normal_density(u), 0.0);
}

/// E[max(X, 0)²]: the generalised expected improvement of power 2 (Schonlau, Welch and Jones 1998), which
/// prefers large gains that are unlikely to small ones that are sure.
inline double expected_squared_gain(double mean, double deviation) {
  if (deviation <= 0) return std::max(mean, 0.0) * std::max(mean, 0.0);
  const double u = mean / deviation;
  if (u < -8) return 0;
  return std::max(
      (mean * mean + deviation * deviation) * normal_below(u) + mean * deviation * normal_density(u), 0.0);
}

}  // namespace sextant::search
