// Kernels that work on one row: norm, gated activation, sums, rotation.
#pragma once

#include <cstdint>

namespace sextant::kernels {

/// e to the power of x: 0 below -87.3, and at most e^88. Relative error below 2e-7.
/// Source: Cephes Mathematical Library, expf.c (Cody and Waite's reduction, minimax polynomial of degree 5).
// Always inline: sixteen floats passed through memory cost more than the arithmetic.
template <class V>
[[gnu::always_inline]] inline V exponential(V x) {
  const V least = V::broadcast(-87.33F);
  const V clamped = V::minimum(V::maximum(x, least), V::broadcast(88.0F));
  const V n = V::round(V::multiply(clamped, V::broadcast(1.44269504F)));
  V r = V::multiply_add(n, V::broadcast(-0.693359375F), clamped);
  r = V::multiply_add(n, V::broadcast(2.12194440e-4F), r);
  V p = V::broadcast(1.9875691500e-4F);
  p = V::multiply_add(p, r, V::broadcast(1.3981999507e-3F));
  p = V::multiply_add(p, r, V::broadcast(8.3334519073e-3F));
  p = V::multiply_add(p, r, V::broadcast(4.1665795894e-2F));
  p = V::multiply_add(p, r, V::broadcast(1.6666665459e-1F));
  p = V::multiply_add(p, r, V::broadcast(5.0000001201e-1F));
  p = V::add(V::multiply_add(p, V::multiply(r, r), r), V::broadcast(1.0F));
  return V::zero_below(V::multiply(p, V::power_of_two(n)), x, least);
}

/// Loads up to 16 floats, zeros behind them; stores up to 16.
template <class V>
V load_part(const float* from, std::int64_t count) {
  if (count >= 16) return V::load(from);
  float v[16] = {};
  for (std::int64_t i = 0; i < count; ++i) v[i] = from[i];
  return V::load(v);
}

template <class V>
void store_part(float* to, V a, std::int64_t count) {
  if (count >= 16) {
    V::store(to, a);
    return;
  }
  float v[16];
  V::store(v, a);
  for (std::int64_t i = 0; i < count; ++i) to[i] = v[i];
}

template <class V>
void rms_norm(const float* x, const float* weight, std::int64_t count, float epsilon, float* out) {
  V squares = V::zero();
  for (std::int64_t i = 0; i < count; i += 16) {
    const V part = load_part<V>(x + i, count - i);
    squares = V::multiply_add(part, part, squares);
  }
  const float mean = V::sum_of_lanes(squares) / static_cast<float>(count);
  const V scale = V::broadcast(1.0F / __builtin_sqrtf(mean + epsilon));
  for (std::int64_t i = 0; i < count; i += 16) {
    const V part = V::multiply(load_part<V>(x + i, count - i), scale);
    store_part<V>(out + i, V::multiply(part, load_part<V>(weight + i, count - i)), count - i);
  }
}

template <class V>
void swiglu(const float* gate, const float* up, std::int64_t count, float* out) {
  const V one = V::broadcast(1.0F);
  for (std::int64_t i = 0; i < count; i += 16) {
    const V g = load_part<V>(gate + i, count - i);
    const V e = exponential(V::multiply(g, V::broadcast(-1.0F)));
    const V activated = V::divide(g, V::add(one, e));
    store_part<V>(out + i, V::multiply(activated, load_part<V>(up + i, count - i)), count - i);
  }
}

template <class V>
void add_rows(const float* x, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; i += 16) {
    store_part<V>(out + i, V::add(load_part<V>(out + i, count - i), load_part<V>(x + i, count - i)),
                  count - i);
  }
}

template <class V>
void rotate(const float* cosines, const float* sines, std::int64_t half, float* head) {
  const V minus = V::broadcast(-1.0F);
  for (std::int64_t i = 0; i < half; i += 16) {
    const V first = load_part<V>(head + i, half - i);
    const V second = load_part<V>(head + half + i, half - i);
    const V cosine = load_part<V>(cosines + i, half - i);
    const V sine = load_part<V>(sines + i, half - i);
    store_part<V>(head + i, V::multiply_add(first, cosine, V::multiply(V::multiply(second, minus), sine)),
                  half - i);
    store_part<V>(head + half + i, V::multiply_add(second, cosine, V::multiply(first, sine)), half - i);
  }
}

}  // namespace sextant::kernels
