// Sixteen floats in two AVX2 registers (see lanes_scalar.h for what each function promises).
#pragma once

#include <immintrin.h>

#include "kernels/bfloat16.h"

namespace sextant::kernels {

struct Avx2Lanes {
  // 6 rows x 2 registers of sums, 2 of weights and 1 of the row's number: 15 of 16 registers.
  static constexpr int kTileRows = 6;
  static constexpr int kTilePanels = 1;

  __m256 low, high;

  static Avx2Lanes broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Avx2Lanes zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Avx2Lanes load(const float* from) { return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}; }
  static void store(float* to, Avx2Lanes a) {
    _mm256_storeu_ps(to, a.low);
    _mm256_storeu_ps(to + 8, a.high);
  }
  static Avx2Lanes load_first_of_pairs(const BFloat16* from) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(load_integers(from), 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(load_integers(from + 16), 16))};
  }
  static Avx2Lanes load_second_of_pairs(const BFloat16* from) {
    const __m256i upper_half = _mm256_set1_epi32(static_cast<int>(0xffff0000U));
    return {_mm256_castsi256_ps(_mm256_and_si256(load_integers(from), upper_half)),
            _mm256_castsi256_ps(_mm256_and_si256(load_integers(from + 16), upper_half))};
  }
  static Avx2Lanes add(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  static Avx2Lanes multiply(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  static Avx2Lanes divide(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  static Avx2Lanes multiply_add(Avx2Lanes a, Avx2Lanes b, Avx2Lanes c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static Avx2Lanes maximum(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  static Avx2Lanes minimum(Avx2Lanes a, Avx2Lanes b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }
  static Avx2Lanes round(Avx2Lanes a) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(a.low, kNearest), _mm256_round_ps(a.high, kNearest)};
  }
  static Avx2Lanes power_of_two(Avx2Lanes exponent) {
    return {power_of_two(exponent.low), power_of_two(exponent.high)};
  }
  static Avx2Lanes between(Avx2Lanes a, int first, int last, Avx2Lanes otherwise) {
    return {between(a.low, first, last, otherwise.low), between(a.high, first - 8, last - 8, otherwise.high)};
  }
  static Avx2Lanes zero_below(Avx2Lanes a, Avx2Lanes x, Avx2Lanes limit) {
    return {_mm256_andnot_ps(_mm256_cmp_ps(x.low, limit.low, _CMP_LT_OQ), a.low),
            _mm256_andnot_ps(_mm256_cmp_ps(x.high, limit.high, _CMP_LT_OQ), a.high)};
  }
  static Avx2Lanes to_nearest_bfloat16(Avx2Lanes a) {
    return {to_nearest_bfloat16(a.low), to_nearest_bfloat16(a.high)};
  }
  static float first(Avx2Lanes a) { return _mm256_cvtss_f32(a.low); }
  static float sum_of_lanes(Avx2Lanes a) {
    const __m256 eight = _mm256_add_ps(a.low, a.high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float maximum_of_lanes(Avx2Lanes a) {
    const __m256 eight = _mm256_max_ps(a.low, a.high);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

 private:
  static __m256i load_integers(const BFloat16* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static __m256 power_of_two(__m256 exponent) {
    const __m256i biased = _mm256_add_epi32(_mm256_cvttps_epi32(exponent), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }
  static __m256 between(__m256 a, int first, int last, __m256 otherwise) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i outside = _mm256_or_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(first), lane),
                                            _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(last)));
    return _mm256_blendv_ps(a, otherwise, _mm256_castsi256_ps(outside));
  }
  static __m256 to_nearest_bfloat16(__m256 a) {
    const __m256i bits = _mm256_castps_si256(a);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    return _mm256_castsi256_ps(_mm256_and_si256(rounded, _mm256_set1_epi32(static_cast<int>(0xffff0000U))));
  }
};

}  // namespace sextant::kernels
