// The inner loop of every product: a few rows against a few panels, sums in registers.
//
// Each sum is one chain of multiply-adds over depth, ascending, from zero. So a result depends on its row and
// its column alone: not on how many rows or panels share the tile, and not on the width of the registers.
#pragma once

#include <cstdint>

#include "kernels/bfloat16.h"
#include "kernels/panels.h"

namespace sextant::kernels {

/// Rows of floats: element (row, depth) is at x[row * row_stride + depth * depth_stride].
struct TileRows {
  const float* x;
  std::int64_t row_stride;
  std::int64_t depth_stride;
};

/// Depth steps of a panel as lanes: one for floats, two for pairs of bfloat16.
template <class V>
inline void load_step(const float* panel, V (&steps)[1]) {
  steps[0] = V::load(panel);
}
template <class V>
inline void load_step(const BFloat16* panel, V (&steps)[2]) {
  V::load_pairs(panel, steps[0], steps[1]);
}
constexpr std::int64_t steps_of(const float*) { return 1; }
constexpr std::int64_t steps_of(const BFloat16*) { return 2; }

/// out[row][column] = (add ? out[row][column] : 0) + sum over depth; `depth` is even for bfloat16 panels.
template <class V, int kRows, int kPanels, typename Element>
inline void tile(TileRows rows, const Element* panel, std::int64_t panel_stride, std::int64_t depth,
                 float* out, std::int64_t out_stride, bool add) {
  constexpr int kSteps = static_cast<int>(steps_of(static_cast<const Element*>(nullptr)));
  V sums[kRows][kPanels];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) sums[r][p] = V::zero();
  }
  for (std::int64_t k = 0; k < depth; k += kSteps) {
    V weights[kPanels][kSteps];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) load_step<V>(panel + p * panel_stride + k * kPanelColumns, weights[p]);
#pragma GCC unroll 2
    for (int s = 0; s < kSteps; ++s) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const V x = V::broadcast(rows.x[r * rows.row_stride + (k + s) * rows.depth_stride]);
#pragma GCC unroll 4
        for (int p = 0; p < kPanels; ++p) sums[r][p] = V::multiply_add(x, weights[p][s], sums[r][p]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      float* to = out + r * out_stride + p * kPanelColumns;
      V::store(to, add ? V::add(V::load(to), sums[r][p]) : sums[r][p]);
    }
  }
}

/// The same for 1 to kMost rows.
template <class V, int kMost, int kPanels, typename Element>
inline void tile_of(int count, TileRows rows, const Element* panel, std::int64_t panel_stride,
                    std::int64_t depth, float* out, std::int64_t out_stride, bool add) {
  if constexpr (kMost > 1) {
    if (count < kMost) {
      tile_of<V, kMost - 1, kPanels>(count, rows, panel, panel_stride, depth, out, out_stride, add);
      return;
    }
  }
  tile<V, kMost, kPanels>(rows, panel, panel_stride, depth, out, out_stride, add);
}

}  // namespace sextant::kernels
