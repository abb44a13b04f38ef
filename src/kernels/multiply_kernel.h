// Matrix products over lanes: rows of activations times packed weights.
//
// Problem: the same weights serve one row (a decoding step, bound by reading them) and thousands (a prefill,
// bound by multiply-adds), and a row's result must not show which of the two it was in.
// Idea: depth is cut into blocks of kDepthBlock; a block's sum is one chain from zero (tile_kernel.h) and
// blocks are added in order. Everything else is only order of work. With few rows, several panels run beside
// each other, each a stream of its own from memory. With many, a block of rows stays in the second-level
// cache, and a block of a bfloat16 panel is widened to floats once for all its rows.
// Cost: 2 * rows * columns * depth operations; weights are read once for each kRowBlock rows.
// Source of the blocking: Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008).
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/tile_kernel.h"

namespace sextant::kernels {

inline constexpr std::int64_t kDepthBlock = 256;
inline constexpr std::int64_t kRowBlock = 192;      ///< 192 rows x 256 x 4 bytes: 192 KiB of activations
inline constexpr std::int64_t kPanelsTogether = 8;  ///< whose sums for a row block stay in cache: 96 KiB
inline constexpr std::int64_t kFewRows = 64;
inline constexpr std::int64_t kAheadBytes = 1024;  ///< that few rows ask for while they use a line

/// Copies rows [tile * kTileRows, …) into the order in which tiles read them: [depth][rows of the tile].
template <class V, bool kRounded>
void prepare_tile(const PrepareTask& task, std::int64_t tile_index) {
  constexpr std::int64_t kTile = V::kTileRows;
  const std::int64_t first = tile_index * kTile;
  const std::int64_t rows = task.rows - first < kTile ? task.rows - first : kTile;
  float* to = static_cast<float*>(task.prepared) + first * task.padded_depth;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* from = task.x + (first + r) * task.x_stride;
    for (std::int64_t k = 0; k < task.depth; ++k) {
      to[k * rows + r] = kRounded ? to_float(to_bfloat16(from[k])) : from[k];
    }
    for (std::int64_t k = task.depth; k < task.padded_depth; ++k) to[k * rows + r] = 0.0F;
  }
}

template <class V>
std::int64_t prepared_bytes(std::int64_t rows, std::int64_t padded_depth) {
  return rows * padded_depth * static_cast<std::int64_t>(sizeof(float));
}

namespace multiply_detail {

template <class V, int kRows, int kPanels, typename Element>
void few_rows_panels(const MultiplyTask& task, const Element* panel, float* out) {
  const auto* x = static_cast<const float*>(task.prepared);
  const std::int64_t panel_stride = task.depth * kPanelColumns;
  for (std::int64_t k = 0; k < task.depth; k += kDepthBlock) {
    const std::int64_t depth = task.depth - k < kDepthBlock ? task.depth - k : kDepthBlock;
    tile<V, kRows, kPanels, true>(TileRows{x + k * kRows, 1, kRows}, panel + k * kPanelColumns, panel_stride,
                                  depth, out, task.out_stride, k > 0, kAheadBytes);
  }
}

template <class V, int kRows, typename Element>
void few_rows(const MultiplyTask& task, std::int64_t first, std::int64_t last) {
  if constexpr (kRows > 1) {
    if (task.rows < kRows) {
      few_rows<V, kRows - 1, Element>(task, first, last);
      return;
    }
  }
  // One or two rows leave registers for more panels.
  constexpr int kBeside = kRows == 1 ? 4 : kRows == 2 ? 2 * V::kTilePanels : V::kTilePanels;
  const auto* weights = static_cast<const Element*>(task.weights);
  std::int64_t p = first;
  for (; p + kBeside <= last; p += kBeside) {
    few_rows_panels<V, kRows, kBeside>(task, weights + p * task.depth * kPanelColumns,
                                       task.out + p * kPanelColumns);
  }
  for (; p < last; ++p) {
    few_rows_panels<V, kRows, 1>(task, weights + p * task.depth * kPanelColumns,
                                 task.out + p * kPanelColumns);
  }
}

/// A block of a panel as floats: the panel itself, or widened into `scratch`.
template <class V>
const float* as_floats(const float* panel, std::int64_t, float*) {
  return panel;
}
template <class V>
const float* as_floats(const BFloat16* panel, std::int64_t depth, float* scratch) {
  for (std::int64_t k = 0; k < depth; k += 2) {
    // The next block, which follows in memory: it arrives while rows pass this one.
    __builtin_prefetch(panel + (kDepthBlock + k) * kPanelColumns, 0, 2);
    V::store(scratch + k * kPanelColumns, V::load_first_of_pairs(panel + k * kPanelColumns));
    V::store(scratch + (k + 1) * kPanelColumns, V::load_second_of_pairs(panel + k * kPanelColumns));
  }
  return scratch;
}

/// Sums of a block of rows and some panels, in memory of their own: rows of a wide result lie so far apart
/// that they would push each other out of the caches.
struct BlockSums {
  static constexpr std::int64_t kStride = (kPanelsTogether + 1) * kPanelColumns;  ///< no power of two
  alignas(64) float values[kRowBlock * kStride];
};

/// Rows [row, row_end) times kPanels panels, depth [k, k + depth).
template <class V, int kPanels, typename Element>
void row_block_panels(const MultiplyTask& task, std::int64_t panel_index, std::int64_t row,
                      std::int64_t row_end, std::int64_t k, std::int64_t depth, float* sums) {
  alignas(64) float scratch[kPanels * kDepthBlock * kPanelColumns];
  const auto* x = static_cast<const float*>(task.prepared);
  const std::int64_t stride = task.depth * kPanelColumns;
  const Element* panel = static_cast<const Element*>(task.weights) + panel_index * stride + k * kPanelColumns;
  const float* floats = nullptr;
  std::int64_t float_stride = stride;
  if constexpr (sizeof(Element) == sizeof(float)) {
    floats = panel;
  } else {
    float_stride = kDepthBlock * kPanelColumns;
    for (int p = 0; p < kPanels; ++p) as_floats<V>(panel + p * stride, depth, scratch + p * float_stride);
    floats = scratch;
  }
  for (; row < row_end; row += V::kTileRows) {
    const std::int64_t left = task.rows - row;
    const int rows = left < V::kTileRows ? static_cast<int>(left) : V::kTileRows;
    tile_of<V, V::kTileRows, kPanels>(rows, TileRows{x + row * task.depth + k * rows, 1, rows}, floats,
                                      float_stride, depth, sums, BlockSums::kStride, k > 0);
    sums += rows * BlockSums::kStride;
  }
}

template <class V, typename Element>
void row_block(const MultiplyTask& task, std::int64_t first, std::int64_t last, std::int64_t row,
               std::int64_t row_end, BlockSums& sums) {
  for (std::int64_t k = 0; k < task.depth; k += kDepthBlock) {
    const std::int64_t depth = task.depth - k < kDepthBlock ? task.depth - k : kDepthBlock;
    std::int64_t p = first;
    for (; p + V::kTilePanels <= last; p += V::kTilePanels) {
      row_block_panels<V, V::kTilePanels, Element>(task, p, row, row_end, k, depth,
                                                   sums.values + (p - first) * kPanelColumns);
    }
    for (; p < last; ++p) {
      row_block_panels<V, 1, Element>(task, p, row, row_end, k, depth,
                                      sums.values + (p - first) * kPanelColumns);
    }
  }
  for (std::int64_t r = row; r < row_end; ++r) {
    float* to = task.out + r * task.out_stride + first * kPanelColumns;
    const float* from = sums.values + (r - row) * BlockSums::kStride;
    for (std::int64_t i = 0; i < (last - first) * kPanelColumns; i += kPanelColumns)
      V::store(to + i, V::load(from + i));
  }
}

template <class V, typename Element>
void many_rows(const MultiplyTask& task, std::int64_t first, std::int64_t last) {
  BlockSums sums;
  // A few rows stay in the cache at any depth: then a panel is read to its end before the next.
  const std::int64_t together = task.rows <= kFewRows ? V::kTilePanels : kPanelsTogether;
  for (std::int64_t row = 0; row < task.rows; row += kRowBlock) {
    const std::int64_t row_end = row + kRowBlock < task.rows ? row + kRowBlock : task.rows;
    for (std::int64_t p = first; p < last; p += together) {
      row_block<V, Element>(task, p, p + together < last ? p + together : last, row, row_end, sums);
    }
  }
}

}  // namespace multiply_detail

/// Columns of panels [first, last) of the product.
template <class V, typename Element>
void multiply_panels(const MultiplyTask& task, std::int64_t first, std::int64_t last) {
  if (task.rows <= V::kTileRows) {
    multiply_detail::few_rows<V, V::kTileRows, Element>(task, first, last);
  } else {
    multiply_detail::many_rows<V, Element>(task, first, last);
  }
}

/// As many sums beside each other as a tile has; that hides the latency of a multiply-add.
template <class V>
void multiply_adds(std::int64_t steps, float* sink) {
  V sums[V::kTileRows * V::kTilePanels];
  const V x = V::broadcast(sink[0]);
  for (V& sum : sums) sum = x;
  for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 32
    for (V& sum : sums) sum = V::multiply_add(sum, x, x);
  }
  for (const V& sum : sums) sums[0] = V::add(sums[0], sum);
  V::store(sink, sums[0]);
}
template <class V>
inline constexpr std::int64_t kOperationsAStep = 2 * kPanelColumns * V::kTileRows * V::kTilePanels;

}  // namespace sextant::kernels
