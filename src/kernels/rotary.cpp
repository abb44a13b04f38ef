// Sources: Llama 3.1's stretch from meta-llama/llama-models models/llama3/model.py (apply_scaling); YaRN from
// arXiv 2309.00071, section 3.2, with the bounds as huggingface/transformers modeling_rope_utils.py rounds
// them.
#include "kernels/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sextant::kernels {
namespace {

constexpr double kFullTurn = 2.0 * std::numbers::pi;

/// Wavelengths beyond the original positions are stretched, short ones kept, those between mixed.
double llama3_frequency(const RotarySpec& spec, double frequency) {
  const double wavelength = kFullTurn / frequency;
  if (wavelength < spec.original_positions / spec.high_frequency_factor) return frequency;
  if (wavelength > spec.original_positions / spec.low_frequency_factor) return frequency / spec.factor;
  const double kept = (spec.original_positions / wavelength - spec.low_frequency_factor) /
                      (spec.high_frequency_factor - spec.low_frequency_factor);
  return (1.0 - kept) * frequency / spec.factor + kept * frequency;
}

/// The pair of dimensions that makes `rotations` turns over the original positions.
double dimension_of(const RotarySpec& spec, double rotations) {
  return static_cast<double>(spec.head_dim) * std::log(spec.original_positions / (rotations * kFullTurn)) /
         (2.0 * std::log(spec.theta));
}

double yarn_frequency(const RotarySpec& spec, double frequency, double dimension) {
  double low = dimension_of(spec, spec.beta_fast);
  double high = dimension_of(spec, spec.beta_slow);
  if (spec.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(spec.head_dim - 1));
  if (low == high) high += 0.001;  // no division by zero
  const double stretched = std::clamp((dimension - low) / (high - low), 0.0, 1.0);
  return stretched * frequency / spec.factor + (1.0 - stretched) * frequency;
}

}  // namespace

std::vector<double> rotary_frequencies(const RotarySpec& spec) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < spec.head_dim / 2; ++i) {
    const double frequency =
        std::pow(spec.theta, -2.0 * static_cast<double>(i) / static_cast<double>(spec.head_dim));
    switch (spec.scaling) {
      case RotaryScaling::kNone:
        result.push_back(frequency);
        break;
      case RotaryScaling::kLinear:
        result.push_back(frequency / spec.factor);
        break;
      case RotaryScaling::kLlama3:
        result.push_back(llama3_frequency(spec, frequency));
        break;
      case RotaryScaling::kYarn:
        result.push_back(yarn_frequency(spec, frequency, static_cast<double>(i)));
        break;
    }
    if (!spec.divisors.empty()) result.back() /= spec.divisors[static_cast<std::size_t>(i)];
  }
  return result;
}

double yarn_attention_factor(double factor) { return factor <= 1.0 ? 1.0 : 0.1 * std::log(factor) + 1.0; }

void rotary_row(const std::vector<double>& frequencies, double attention_factor, std::int64_t position,
                float* cosines, float* sines) {
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double angle = static_cast<double>(position) * frequencies[i];
    cosines[i] = static_cast<float>(std::cos(angle) * attention_factor);
    sines[i] = static_cast<float>(std::sin(angle) * attention_factor);
  }
}

}  // namespace sextant::kernels
