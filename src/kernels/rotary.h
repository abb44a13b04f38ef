// Rotary position embedding (Su et al., arXiv 2104.09864) and the ways to stretch it for long texts.
#pragma once

#include <cstdint>
#include <vector>

namespace sextant::kernels {

enum class RotaryScaling { kNone, kLinear, kLlama3, kYarn };

struct RotarySpec {
  std::int64_t head_dim = 0;
  double theta = 10000.0;
  RotaryScaling scaling = RotaryScaling::kNone;
  double factor = 1.0;
  double original_positions = 0.0;     ///< llama3, yarn: positions of the first training
  double low_frequency_factor = 1.0;   ///< llama3
  double high_frequency_factor = 4.0;  ///< llama3
  double beta_fast = 32.0;             ///< yarn
  double beta_slow = 1.0;              ///< yarn
  bool truncate = true;                ///< yarn: the bounds of the ramp are whole dimensions
  double attention_factor = 1.0;       ///< yarn: cosines and sines are multiplied by it
  std::vector<double> divisors = {};   ///< of the frequencies, head_dim / 2 of them; none: all 1
};

/// Radians a position for each pair of dimensions: head_dim / 2 of them, in double precision.
std::vector<double> rotary_frequencies(const RotarySpec& spec);

/// YaRN's usual attention factor, 0.1 ln(factor) + 1 (Peng et al., arXiv 2309.00071, equation 22).
double yarn_attention_factor(double factor);

/// Cosines and sines of one position, each head_dim / 2 floats.
void rotary_row(const std::vector<double>& frequencies, double attention_factor, std::int64_t position,
                float* cosines, float* sines);

}  // namespace sextant::kernels
