// A software model of the tile instructions, exact to the bit as far as their description is.
//
// TDPBF16PS, by the operation section of Intel's Instruction Set Extensions Programming Reference: for each
// row and column, the products of even and of odd depth are summed apart, each product and sum fused and
// rounded once to nearest even, from zero; the two sums are added, and that to the destination. Denormal
// inputs and results are zeros.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/bfloat16.h"
#include "kernels/multiply_tiles.h"

namespace sextant::kernels {

class ModelTiles {
 public:
  void configure(std::int64_t first_rows, std::int64_t second_rows) {
    rows_of_[0] = first_rows;
    rows_of_[1] = second_rows;
  }
  template <int a, int b>
  void zero() {
    for (float& value : sums_[a][b]) value = 0.0F;
  }
  template <int a>
  void load_rows(const BFloat16* from) {
    for (std::int64_t i = 0; i < rows_of_[a] * kPairedDepth; ++i) rows_[a][i] = normal(to_float(from[i]));
  }
  template <int b>
  void load_panel(const BFloat16* from) {
    for (std::int64_t i = 0; i < kTileElements; ++i) panels_[b][i] = normal(to_float(from[i]));
  }
  template <int a, int b>
  void dot() {
    for (std::int64_t row = 0; row < rows_of_[a]; ++row) {
      for (std::int64_t column = 0; column < kPanelColumns; ++column) {
        float& sum = sums_[a][b][row * kPanelColumns + column];
        sum = add_products(rows_[a] + row * kPairedDepth, panels_[b] + 2 * column, sum);
      }
    }
  }
  template <int a, int b>
  void store(float* to, std::int64_t stride) const {
    for (std::int64_t row = 0; row < rows_of_[a]; ++row) {
      for (std::int64_t column = 0; column < kPanelColumns; ++column) {
        to[row * stride + column] = sums_[a][b][row * kPanelColumns + column];
      }
    }
  }

 private:
  static float normal(float value) {
    return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value) : value;
  }
  static float add_products(const float* row, const float* column, float sum) {
    float even = 0.0F, odd = 0.0F;
    for (std::int64_t pair = 0; pair < kPairedDepth / 2; ++pair) {
      even = normal(std::fma(row[2 * pair], column[pair * 2 * kPanelColumns], even));
      odd = normal(std::fma(row[2 * pair + 1], column[pair * 2 * kPanelColumns + 1], odd));
    }
    return normal(sum + normal(even + odd));
  }

  std::int64_t rows_of_[2] = {};
  float rows_[2][kTileElements];
  float panels_[2][kTileElements];
  float sums_[2][2][kTile * kPanelColumns];
};

}  // namespace sextant::kernels
