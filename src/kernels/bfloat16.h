// bfloat16 as 16 bits of an integer: the upper half of a float. g++ 12 has no type for it.
#pragma once

#include <bit>
#include <cstdint>

namespace sextant::kernels {

using BFloat16 = std::uint16_t;

constexpr float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

/// The nearest bfloat16, ties to even; a NaN stays one.
constexpr BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<BFloat16>((bits >> 16) | 0x40U);
  return static_cast<BFloat16>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace sextant::kernels
