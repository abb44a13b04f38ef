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

/// A depth step of a panel as lanes. The two steps of a pair of bfloat16 are loaded apart, as both at once
/// would take registers from the sums.
template <class V, int kStep>
inline V load_step(const float* panel) {
  return V::load(panel);
}
template <class V, int kStep>
inline V load_step(const BFloat16* panel) {
  return kStep == 0 ? V::load_first_of_pairs(panel) : V::load_second_of_pairs(panel);
}
constexpr int steps_of(const float*) { return 1; }
constexpr int steps_of(const BFloat16*) { return 2; }

/// sums[row][panel] += x[row] * weights[panel], a step of depth.
template <class V, int kStep, int kRows, int kPanels, typename Element>
inline void add_step(V (&sums)[kRows][kPanels], TileRows rows, const Element* panel,
                     std::int64_t panel_stride, std::int64_t k) {
  V weights[kPanels];
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
    weights[p] = load_step<V, kStep>(panel + p * panel_stride + k * kPanelColumns);
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const V x = V::broadcast(rows.x[r * rows.row_stride + (k + kStep) * rows.depth_stride]);
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) sums[r][p] = V::multiply_add(x, weights[p], sums[r][p]);
  }
}

/// sums[row][panel] += the products over depth, which is even for bfloat16 panels. kStreams: while a line
/// of a panel is used, the one `ahead` bytes from it is asked for from memory.
template <class V, int kRows, int kPanels, bool kStreams = false, typename Element>
inline void add_products(V (&sums)[kRows][kPanels], TileRows rows, const Element* panel,
                         std::int64_t panel_stride, std::int64_t depth, std::int64_t ahead = 0) {
  constexpr int kSteps = steps_of(static_cast<const Element*>(nullptr));
  for (std::int64_t k = 0; k < depth; k += kSteps) {
    if constexpr (kStreams) {
      for (int p = 0; p < kPanels; ++p) {
        const Element* line = panel + p * panel_stride + k * kPanelColumns;
        __builtin_prefetch(reinterpret_cast<const char*>(line) + ahead);
      }
    }
    add_step<V, 0>(sums, rows, panel, panel_stride, k);
    if constexpr (kSteps == 2) add_step<V, 1>(sums, rows, panel, panel_stride, k);
  }
}

template <class V, int kRows, int kPanels>
inline void clear_sums(V (&sums)[kRows][kPanels]) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) sums[r][p] = V::zero();
  }
}

/// out[row][column] = (add ? out[row][column] : 0) + sum over depth.
template <class V, int kRows, int kPanels, bool kStreams = false, typename Element>
inline void tile(TileRows rows, const Element* panel, std::int64_t panel_stride, std::int64_t depth,
                 float* out, std::int64_t out_stride, bool add, std::int64_t ahead = 0) {
  V sums[kRows][kPanels];
  clear_sums(sums);
  add_products<V, kRows, kPanels, kStreams>(sums, rows, panel, panel_stride, depth, ahead);
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
template <class V, int kMost, int kPanels, bool kStreams = false, typename Element>
inline void tile_of(int count, TileRows rows, const Element* panel, std::int64_t panel_stride,
                    std::int64_t depth, float* out, std::int64_t out_stride, bool add,
                    std::int64_t ahead = 0) {
  if constexpr (kMost > 1) {
    if (count < kMost) {
      tile_of<V, kMost - 1, kPanels, kStreams>(count, rows, panel, panel_stride, depth, out, out_stride, add,
                                               ahead);
      return;
    }
  }
  tile<V, kMost, kPanels, kStreams>(rows, panel, panel_stride, depth, out, out_stride, add, ahead);
}

}  // namespace sextant::kernels
