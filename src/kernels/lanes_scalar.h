// Sixteen floats and what kernels do with them, in plain C++: the reference of every other form.
//
// Each form of lanes offers the same functions. They are exact or round once, as IEEE 754 says, so a kernel
// written over lanes computes the same bits in every form.
#pragma once

#include <bit>
#include <cmath>

#include "kernels/bfloat16.h"

namespace sextant::kernels {

struct ScalarLanes {
  static constexpr int kTileRows = 6;    ///< rows that a multiplication keeps in registers
  static constexpr int kTilePanels = 1;  ///< panels of 16 columns beside each other at that many rows

  float v[16];

  static ScalarLanes broadcast(float x) {
    ScalarLanes r;
    for (float& lane : r.v) lane = x;
    return r;
  }
  static ScalarLanes zero() { return broadcast(0.0F); }
  static ScalarLanes load(const float* from) {
    ScalarLanes r;
    for (int i = 0; i < 16; ++i) r.v[i] = from[i];
    return r;
  }
  static void store(float* to, ScalarLanes a) {
    for (int i = 0; i < 16; ++i) to[i] = a.v[i];
  }
  /// Of 16 pairs of bfloat16 the first, or the second.
  static ScalarLanes load_first_of_pairs(const BFloat16* from) {
    ScalarLanes r;
    for (int i = 0; i < 16; ++i) r.v[i] = to_float(from[2 * i]);
    return r;
  }
  static ScalarLanes load_second_of_pairs(const BFloat16* from) { return load_first_of_pairs(from + 1); }
  static ScalarLanes add(ScalarLanes a, ScalarLanes b) {
    for (int i = 0; i < 16; ++i) a.v[i] += b.v[i];
    return a;
  }
  static ScalarLanes multiply(ScalarLanes a, ScalarLanes b) {
    for (int i = 0; i < 16; ++i) a.v[i] *= b.v[i];
    return a;
  }
  static ScalarLanes divide(ScalarLanes a, ScalarLanes b) {
    for (int i = 0; i < 16; ++i) a.v[i] /= b.v[i];
    return a;
  }
  /// a * b + c, rounded once.
  static ScalarLanes multiply_add(ScalarLanes a, ScalarLanes b, ScalarLanes c) {
    for (int i = 0; i < 16; ++i) c.v[i] = std::fma(a.v[i], b.v[i], c.v[i]);
    return c;
  }
  /// The larger; b where either is a NaN, as the instructions do.
  static ScalarLanes maximum(ScalarLanes a, ScalarLanes b) {
    for (int i = 0; i < 16; ++i) b.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
    return b;
  }
  static ScalarLanes minimum(ScalarLanes a, ScalarLanes b) {
    for (int i = 0; i < 16; ++i) b.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
    return b;
  }
  /// To the nearest whole number, ties to even.
  static ScalarLanes round(ScalarLanes a) {
    for (float& lane : a.v) lane = std::nearbyint(lane);
    return a;
  }
  /// 2 to the power of whole numbers from -126 to 127.
  static ScalarLanes power_of_two(ScalarLanes exponent) {
    for (float& lane : exponent.v) lane = std::bit_cast<float>((static_cast<std::int32_t>(lane) + 127) << 23);
    return exponent;
  }
  /// Lanes first to last of a, `otherwise` elsewhere.
  static ScalarLanes between(ScalarLanes a, int first, int last, ScalarLanes otherwise) {
    for (int i = 0; i < 16; ++i) a.v[i] = i >= first && i <= last ? a.v[i] : otherwise.v[i];
    return a;
  }
  /// a where x < limit is false (also for NaN), 0 elsewhere.
  static ScalarLanes zero_below(ScalarLanes a, ScalarLanes x, ScalarLanes limit) {
    for (int i = 0; i < 16; ++i) a.v[i] = x.v[i] < limit.v[i] ? 0.0F : a.v[i];
    return a;
  }
  /// A NaN may become any number.
  static ScalarLanes to_nearest_bfloat16(ScalarLanes a) {
    for (float& lane : a.v) lane = to_float(to_bfloat16(lane));
    return a;
  }
  static float first(ScalarLanes a) { return a.v[0]; }
  /// By one tree: lanes 8 apart, then 4, 2 and 1.
  static float sum_of_lanes(ScalarLanes a) {
    for (int apart = 8; apart > 0; apart /= 2) {
      for (int i = 0; i < apart; ++i) a.v[i] += a.v[i + apart];
    }
    return a.v[0];
  }
  static float maximum_of_lanes(ScalarLanes a) {
    for (int apart = 8; apart > 0; apart /= 2) {
      for (int i = 0; i < apart; ++i) a.v[i] = a.v[i] > a.v[i + apart] ? a.v[i] : a.v[i + apart];
    }
    return a.v[0];
  }
};

}  // namespace sextant::kernels
