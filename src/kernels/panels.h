// The one arrangement that every matrix product reads: panels of 16 columns.
//
// Float panels are [depth][16]. bfloat16 panels are [depth / 2][16][2]: 32 bits hold two neighbours in depth
// of one column, which AVX2 and AVX-512 split with a shift and a mask, and which is what AMX wants of its
// second operand. The depth of a bfloat16 panel is a multiple of 32, filled with zeros.
#pragma once

#include <cstdint>

namespace sextant::kernels {

inline constexpr std::int64_t kPanelColumns = 16;
inline constexpr std::int64_t kPairedDepth = 32;  ///< the depth of bfloat16 panels is a multiple of it

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Where (depth, column) of a panel lies, in elements.
constexpr std::int64_t float_panel_offset(std::int64_t depth, std::int64_t column) {
  return depth * kPanelColumns + column;
}
constexpr std::int64_t paired_panel_offset(std::int64_t depth, std::int64_t column) {
  return depth / 2 * (2 * kPanelColumns) + column * 2 + depth % 2;
}

}  // namespace sextant::kernels
