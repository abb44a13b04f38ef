// NumPy's RandomState is frozen by promise (NEP 19): the same seed gives the same numbers in every version.
// It is the Mersenne Twister, seeded as std::mt19937 is, with
//
// - integers by masked rejection: draw 32 bits, keep those of the range's mask, draw again while too large;
// - normal numbers in pairs by Marsaglia's polar method, the second of a pair kept for the next call;
// - gamma above 1 by Marsaglia and Tsang, "A simple method for generating gamma variables" (ACM TOMS 26,
//   2000); below 1 by the rejection of Ahrens and Dieter (Computing 12, 1974) in its exponential form; at 1
//   the exponential distribution by inversion.
//
// Checked against NumPy 2.4.6 (load_test.cpp).
#include "load/numpy_random.h"

#include <bit>
#include <cmath>

#include "base/check.h"

namespace sextant::load {

std::int64_t NumpyRandom::integer(std::int64_t low, std::int64_t high) {
  SEXTANT_CHECK_LE(low, high);
  const auto span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  SEXTANT_CHECK_LE(span, 0xFFFFFFFFu);
  if (span == 0) return low;  // nothing is drawn
  const auto mask = static_cast<std::uint32_t>((std::uint64_t{1} << std::bit_width(span)) - 1);
  std::uint32_t value = 0;
  do {
    value = static_cast<std::uint32_t>(engine_()) & mask;
  } while (value > span);
  return low + static_cast<std::int64_t>(value);
}

double NumpyRandom::uniform() {
  const auto high = static_cast<double>(engine_() >> 5);  // 27 bits
  const auto low = static_cast<double>(engine_() >> 6);   // 26 bits
  return (high * 0x1p26 + low) / 0x1p53;
}

double NumpyRandom::exponential() { return -std::log(1.0 - uniform()); }

double NumpyRandom::normal() {
  if (spare_normal_) {
    const double spare = *spare_normal_;
    spare_normal_.reset();
    return spare;
  }
  double x = 0;
  double y = 0;
  double square = 0;
  do {
    x = 2.0 * uniform() - 1.0;
    y = 2.0 * uniform() - 1.0;
    square = x * x + y * y;
  } while (square >= 1.0 || square == 0.0);
  const double factor = std::sqrt(-2.0 * std::log(square) / square);
  spare_normal_ = factor * x;
  return factor * y;
}

double NumpyRandom::small_gamma(double shape) {
  for (;;) {
    const double u = uniform();
    const double e = exponential();
    if (u <= 1.0 - shape) {
      const double x = std::pow(u, 1.0 / shape);
      if (x <= e) return x;
    } else {
      const double y = -std::log((1.0 - u) / shape);
      const double x = std::pow(1.0 - shape + shape * y, 1.0 / shape);
      if (x <= e + y) return x;
    }
  }
}

double NumpyRandom::large_gamma(double shape) {
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    double x = 0;
    double v = 0;
    do {
      x = normal();
      v = 1.0 + c * x;
    } while (v <= 0.0);
    v = v * v * v;
    const double u = uniform();
    if (u < 1.0 - 0.0331 * (x * x) * (x * x)) return d * v;  // the paper's quick acceptance
    if (std::log(u) < 0.5 * x * x + d * (1.0 - v + std::log(v))) return d * v;
  }
}

double NumpyRandom::gamma(double shape, double scale) {
  if (shape == 1.0) return scale * exponential();
  return scale * (shape < 1.0 ? small_gamma(shape) : large_gamma(shape));
}

}  // namespace sextant::load
