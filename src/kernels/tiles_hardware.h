// The AMX instructions. Their operands are numbers in the text of the instruction, so each is spelt out:
// tiles 0 to 3 hold sums, 4 and 5 rows, 6 and 7 panels.
#pragma once

#include <immintrin.h>

#include "kernels/bfloat16.h"
#include "kernels/multiply_tiles.h"

namespace sextant::kernels {

class HardwareTiles {
 public:
  ~HardwareTiles() { _tile_release(); }

  void configure(std::int64_t first_rows, std::int64_t second_rows) {
    if (first_rows == first_rows_ && second_rows == second_rows_) return;
    first_rows_ = first_rows;
    second_rows_ = second_rows;
    alignas(64) Configuration c = {};
    c.palette = 1;
    for (unsigned short& bytes : c.row_bytes) bytes = 64;
    const auto first = static_cast<unsigned char>(first_rows);
    // A tile of no rows is refused; an unused one gets a full shape.
    const auto second = static_cast<unsigned char>(second_rows == 0 ? kTile : second_rows);
    c.rows[0] = c.rows[1] = c.rows[4] = first;
    c.rows[2] = c.rows[3] = c.rows[5] = second;
    c.rows[6] = c.rows[7] = static_cast<unsigned char>(kTile);
    // g++ 12 believes that only eight bytes are read and drops the other stores.
    asm volatile("" ::"r"(&c) : "memory");
    _tile_loadconfig(&c);
  }

  template <int a, int b>
  void zero() {
    if constexpr (a == 0 && b == 0) _tile_zero(0);
    if constexpr (a == 0 && b == 1) _tile_zero(1);
    if constexpr (a == 1 && b == 0) _tile_zero(2);
    if constexpr (a == 1 && b == 1) _tile_zero(3);
  }
  template <int a>
  void load_rows(const BFloat16* from) {
    if constexpr (a == 0) _tile_loadd(4, from, 64);
    if constexpr (a == 1) _tile_loadd(5, from, 64);
  }
  template <int b>
  void load_panel(const BFloat16* from) {
    if constexpr (b == 0) _tile_loadd(6, from, 64);
    if constexpr (b == 1) _tile_loadd(7, from, 64);
  }
  template <int a, int b>
  void dot() {
    if constexpr (a == 0 && b == 0) _tile_dpbf16ps(0, 4, 6);
    if constexpr (a == 0 && b == 1) _tile_dpbf16ps(1, 4, 7);
    if constexpr (a == 1 && b == 0) _tile_dpbf16ps(2, 5, 6);
    if constexpr (a == 1 && b == 1) _tile_dpbf16ps(3, 5, 7);
  }
  template <int a, int b>
  void store(float* to, std::int64_t stride) const {
    const std::int64_t bytes = stride * static_cast<std::int64_t>(sizeof(float));
    if constexpr (a == 0 && b == 0) _tile_stored(0, to, bytes);
    if constexpr (a == 0 && b == 1) _tile_stored(1, to, bytes);
    if constexpr (a == 1 && b == 0) _tile_stored(2, to, bytes);
    if constexpr (a == 1 && b == 1) _tile_stored(3, to, bytes);
    asm volatile("" ::: "memory");
  }

 private:
  struct Configuration {
    unsigned char palette;
    unsigned char start_row;
    unsigned char reserved[14];
    unsigned short row_bytes[16];
    unsigned char rows[16];
  };
  static_assert(sizeof(Configuration) == 64);

  std::int64_t first_rows_ = -1;
  std::int64_t second_rows_ = -1;
};

}  // namespace sextant::kernels
