// The shapes on which kernels are tested and measured: the small ones by the tests, the large ones by the
// benchmark, edges among the small, a model's among the large.
#pragma once

#include <array>
#include <cstdint>

namespace sextant::kernels {

struct ProductShape {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t depth;

  constexpr std::int64_t operations() const { return 2 * rows * columns * depth; }
};

/// Tests take shapes up to this many operations, the benchmark those beyond.
inline constexpr std::int64_t kLargestTested = 40'000'000;

inline constexpr std::array kProductShapes = {
    // One panel and less; ragged columns and depths; row counts around the tiles of 6, 12, 16 and 32 rows;
    // depths around blocks of 256; more rows than a row block.
    ProductShape{1, 16, 32}, ProductShape{1, 1, 1}, ProductShape{1, 100, 67}, ProductShape{2, 70, 256},
    ProductShape{3, 33, 257}, ProductShape{6, 48, 96}, ProductShape{7, 129, 31}, ProductShape{12, 40, 300},
    ProductShape{13, 17, 512}, ProductShape{16, 64, 64}, ProductShape{17, 65, 513}, ProductShape{33, 31, 800},
    ProductShape{200, 24, 288}, ProductShape{390, 50, 260},
    // 16 layers, hidden 2048, 32/8 heads of 64, FFN 8192: the projections of decoding and prefill.
    ProductShape{1, 3072, 2048}, ProductShape{1, 16384, 2048}, ProductShape{1, 2048, 8192},
    ProductShape{8, 3072, 2048}, ProductShape{8, 16384, 2048}, ProductShape{8, 2048, 8192},
    ProductShape{16, 16384, 2048}, ProductShape{64, 16384, 2048}, ProductShape{512, 3072, 2048},
    ProductShape{512, 2048, 2048}, ProductShape{512, 16384, 2048}, ProductShape{512, 2048, 8192}};

struct AttentionCase {
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  std::int64_t context;  ///< positions before the rows of the step
  std::int64_t rows;
  std::int64_t window_tokens;

  constexpr std::int64_t operations() const { return 4 * rows * heads * head_dim * (context + rows / 2); }
};

inline constexpr std::array kAttentionCases = {
    AttentionCase{1, 1, 16, 0, 1, 0}, AttentionCase{9, 3, 32, 0, 70, 0}, AttentionCase{4, 2, 32, 100, 33, 0},
    AttentionCase{4, 4, 40, 63, 3, 0}, AttentionCase{3, 1, 96, 0, 130, 0},
    AttentionCase{4, 2, 32, 0, 200, 128}, AttentionCase{4, 2, 32, 150, 90, 17},
    AttentionCase{2, 1, 16, 1000, 60, 0}, AttentionCase{2, 1, 16, 2100, 1, 1100},
    AttentionCase{4, 1, 20, 30, 40, 1},
    // Decoding after 2,048 positions, and a prefill.
    AttentionCase{32, 8, 64, 2048, 1, 0}, AttentionCase{32, 8, 64, 0, 512, 0},
    AttentionCase{32, 8, 64, 1536, 512, 0}};

}  // namespace sextant::kernels
