// The random numbers of NumPy's `numpy.random.seed` and the functions beside it, bit for bit.
//
// InferenceX draws lengths, prompts and arrivals with them. Drawing the same numbers in the same order gives
// the same workload for the same seed, so that a run here and a run of its client are the same load.
//
// Not for threads: a generator is a sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <random>

namespace sextant::load {

class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint32_t seed) : engine_(seed) {}

  /// randint(low, high + 1): uniform among low…high, both included. At most 2^32 values.
  std::int64_t integer(std::int64_t low, std::int64_t high);
  /// random_sample(): uniform in [0, 1) with 53 bits.
  double uniform();
  /// gamma(shape, scale), of mean shape · scale; both positive.
  double gamma(double shape, double scale);

 private:
  double exponential();
  double normal();
  double small_gamma(double shape);
  double large_gamma(double shape);

  std::mt19937 engine_;
  std::optional<double> spare_normal_;
};

}  // namespace sextant::load
