// Sixteen floats in one AVX-512 register (see lanes_scalar.h for what each function promises).
#pragma once

#include <immintrin.h>

#include "kernels/bfloat16.h"

namespace sextant::kernels {

struct Avx512Lanes {
  // 12 rows x 2 panels of sums and 2 registers of weights: 26 of 32; rows' numbers are broadcast from memory.
  static constexpr int kTileRows = 12;
  static constexpr int kTilePanels = 2;

  __m512 v;

  static Avx512Lanes broadcast(float x) { return {_mm512_set1_ps(x)}; }
  static Avx512Lanes zero() { return {_mm512_setzero_ps()}; }
  static Avx512Lanes load(const float* from) { return {_mm512_loadu_ps(from)}; }
  static void store(float* to, Avx512Lanes a) { _mm512_storeu_ps(to, a.v); }
  static Avx512Lanes load_first_of_pairs(const BFloat16* from) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(from), 16))};
  }
  static Avx512Lanes load_second_of_pairs(const BFloat16* from) {
    return {_mm512_castsi512_ps(
        _mm512_and_si512(_mm512_loadu_si512(from), _mm512_set1_epi32(static_cast<int>(0xffff0000U))))};
  }
  static Avx512Lanes add(Avx512Lanes a, Avx512Lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
  static Avx512Lanes multiply(Avx512Lanes a, Avx512Lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
  static Avx512Lanes divide(Avx512Lanes a, Avx512Lanes b) { return {_mm512_div_ps(a.v, b.v)}; }
  static Avx512Lanes multiply_add(Avx512Lanes a, Avx512Lanes b, Avx512Lanes c) {
    return {_mm512_fmadd_ps(a.v, b.v, c.v)};
  }
  static Avx512Lanes maximum(Avx512Lanes a, Avx512Lanes b) { return {_mm512_max_ps(a.v, b.v)}; }
  static Avx512Lanes minimum(Avx512Lanes a, Avx512Lanes b) { return {_mm512_min_ps(a.v, b.v)}; }
  static Avx512Lanes round(Avx512Lanes a) {
    return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  static Avx512Lanes power_of_two(Avx512Lanes exponent) {
    const __m512i biased = _mm512_add_epi32(_mm512_cvttps_epi32(exponent.v), _mm512_set1_epi32(127));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(biased, 23))};
  }
  static Avx512Lanes between(Avx512Lanes a, int first, int last, Avx512Lanes otherwise) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __mmask16 kept = _mm512_cmple_epi32_mask(_mm512_set1_epi32(first), lane) &
                           _mm512_cmple_epi32_mask(lane, _mm512_set1_epi32(last));
    return {_mm512_mask_blend_ps(kept, otherwise.v, a.v)};
  }
  static Avx512Lanes zero_below(Avx512Lanes a, Avx512Lanes x, Avx512Lanes limit) {
    return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, limit.v, _CMP_LT_OQ), a.v, _mm512_setzero_ps())};
  }
  static Avx512Lanes to_nearest_bfloat16(Avx512Lanes a) {
    const __m512i bits = _mm512_castps_si512(a.v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    return {_mm512_castsi512_ps(_mm512_and_si512(rounded, _mm512_set1_epi32(static_cast<int>(0xffff0000U))))};
  }
  static float first(Avx512Lanes a) { return _mm512_cvtss_f32(a.v); }
  static float sum_of_lanes(Avx512Lanes a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float maximum_of_lanes(Avx512Lanes a) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
};

}  // namespace sextant::kernels
