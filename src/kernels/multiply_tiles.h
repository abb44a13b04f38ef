// Matrix products in bfloat16 over AMX tiles, or whatever behaves like them.
//
// A tile holds 16 rows of 64 bytes. TDPBF16PS adds to 16 x 16 floats the products of 16 rows of 32
// activations with 16 columns of 32 weights. Here 32 rows and 32 columns are four such sums: each tile that
// is loaded is used twice. Depth ascends 32 at a time, and a row's sum is formed by the instruction from that
// row alone, so rows do not show how many they were. Weights of kPanelsInCache panels stay in the
// second-level cache while all rows pass them.
//
// `Tiles` has: configure(rows of the first 16, of the second), zero<a, b>(), load_rows<a>(from),
// load_panel<b>(from), dot<a, b>(), store<a, b>(to, stride), where a and b, 0 or 1, are halves of the rows
// and of the columns. tiles_hardware.h are the instructions, tiles_model.h a model of them for other
// processors. Source: Intel Architecture Instruction Set Extensions Programming Reference, chapter 3 (AMX).
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/panels.h"

namespace sextant::kernels {

inline constexpr std::int64_t kTile = 16;           ///< rows of a tile
inline constexpr std::int64_t kTileElements = 512;  ///< 16 x 32 bfloat16, 1 KiB
inline constexpr std::int64_t kPanelsInCache = 8;

template <class Tiles, int kRowHalves, int kPanels>
void multiply_strip(Tiles& tiles, const BFloat16* x, const BFloat16* panel, std::int64_t depth, float* out,
                    std::int64_t out_stride) {
  tiles.template zero<0, 0>();
  if constexpr (kPanels > 1) tiles.template zero<0, 1>();
  if constexpr (kRowHalves > 1) tiles.template zero<1, 0>();
  if constexpr (kRowHalves > 1 && kPanels > 1) tiles.template zero<1, 1>();
  for (std::int64_t k = 0; k < depth; k += kPairedDepth) {
    tiles.template load_panel<0>(panel + k * kPanelColumns);
    if constexpr (kPanels > 1) tiles.template load_panel<1>(panel + (depth + k) * kPanelColumns);
    tiles.template load_rows<0>(x + k * kTile);
    if constexpr (kRowHalves > 1) tiles.template load_rows<1>(x + (depth + k) * kTile);
    tiles.template dot<0, 0>();
    if constexpr (kPanels > 1) tiles.template dot<0, 1>();
    if constexpr (kRowHalves > 1) tiles.template dot<1, 0>();
    if constexpr (kRowHalves > 1 && kPanels > 1) tiles.template dot<1, 1>();
  }
  tiles.template store<0, 0>(out, out_stride);
  if constexpr (kPanels > 1) tiles.template store<0, 1>(out + kPanelColumns, out_stride);
  if constexpr (kRowHalves > 1) tiles.template store<1, 0>(out + kTile * out_stride, out_stride);
  if constexpr (kRowHalves > 1 && kPanels > 1) {
    tiles.template store<1, 1>(out + kTile * out_stride + kPanelColumns, out_stride);
  }
}

template <class Tiles, int kPanels>
void multiply_strip_of(Tiles& tiles, const MultiplyTask& task, std::int64_t row, std::int64_t panel_index) {
  const auto* x = static_cast<const BFloat16*>(task.prepared) + row * task.depth;
  const auto* panel = static_cast<const BFloat16*>(task.weights) + panel_index * task.depth * kPanelColumns;
  float* out = task.out + row * task.out_stride + panel_index * kPanelColumns;
  if (task.rows - row > kTile) {
    multiply_strip<Tiles, 2, kPanels>(tiles, x, panel, task.depth, out, task.out_stride);
  } else {
    multiply_strip<Tiles, 1, kPanels>(tiles, x, panel, task.depth, out, task.out_stride);
  }
}

template <class Tiles>
void multiply_tiles(const MultiplyTask& task, std::int64_t first, std::int64_t last) {
  Tiles tiles;
  for (std::int64_t group = first; group < last; group += kPanelsInCache) {
    const std::int64_t group_end = group + kPanelsInCache < last ? group + kPanelsInCache : last;
    for (std::int64_t row = 0; row < task.rows; row += 2 * kTile) {
      const std::int64_t left = task.rows - row;
      tiles.configure(left < kTile ? left : kTile, left <= kTile      ? 0
                                                   : left < 2 * kTile ? left - kTile
                                                                      : kTile);
      std::int64_t p = group;
      for (; p + 2 <= group_end; p += 2) multiply_strip_of<Tiles, 2>(tiles, task, row, p);
      if (p < group_end) multiply_strip_of<Tiles, 1>(tiles, task, row, p);
    }
  }
}

/// Rows of bfloat16 as tiles: [rows / 16][depth / 32][16][32], zeros behind the last row.
template <class Tiles>
void prepare_tiles(const PrepareTask& task, std::int64_t tile) {
  auto* to = static_cast<BFloat16*>(task.prepared) + tile * kTile * task.padded_depth;
  for (std::int64_t r = 0; r < kTile; ++r) {
    const std::int64_t row = tile * kTile + r;
    const float* from = task.x + row * task.x_stride;
    for (std::int64_t k = 0; k < task.padded_depth; ++k) {
      const bool real = row < task.rows && k < task.depth;
      to[k / kPairedDepth * kTileElements + r * kPairedDepth + k % kPairedDepth] =
          real ? to_bfloat16(from[k]) : BFloat16{0};
    }
  }
}

template <class Tiles>
std::int64_t prepared_tile_bytes(std::int64_t rows, std::int64_t padded_depth) {
  return round_up(rows, kTile) * padded_depth * static_cast<std::int64_t>(sizeof(BFloat16));
}

/// Four products of tiles a step, each into sums of its own.
template <class Tiles>
void multiply_adds_of_tiles(std::int64_t steps, float* sink) {
  alignas(64) BFloat16 zeros[kTileElements] = {};
  alignas(64) float sums[kTile * kPanelColumns];
  Tiles tiles;
  tiles.configure(kTile, kTile);
  tiles.template zero<0, 0>();
  tiles.template zero<0, 1>();
  tiles.template zero<1, 0>();
  tiles.template zero<1, 1>();
  tiles.template load_rows<0>(zeros);
  tiles.template load_rows<1>(zeros);
  tiles.template load_panel<0>(zeros);
  tiles.template load_panel<1>(zeros);
  for (std::int64_t step = 0; step < steps; ++step) {
    tiles.template dot<0, 0>();
    tiles.template dot<0, 1>();
    tiles.template dot<1, 0>();
    tiles.template dot<1, 1>();
  }
  tiles.template store<0, 0>(sums, kPanelColumns);
  for (std::int64_t i = 0; i < kPanelColumns; ++i) sink[i] = sums[i];
}

template <class Tiles>
constexpr MultiplyKernels tile_kernels() {
  return {kTile,
          prepared_tile_bytes<Tiles>,
          prepare_tiles<Tiles>,
          multiply_tiles<Tiles>,
          multiply_adds_of_tiles<Tiles>,
          4 * 2 * kTile * kPanelColumns * kPairedDepth};
}

}  // namespace sextant::kernels
