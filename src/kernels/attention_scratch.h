// Fixed steps of attention, and the memory that its kernel works in.
#pragma once

#include <cstdint>

#include "kernels/panels.h"

namespace sextant::kernels {

inline constexpr std::int64_t kKeyBlock = 64;  ///< keys between two rescalings
inline constexpr std::int64_t kKeyGroups = kKeyBlock / kPanelColumns;
inline constexpr std::int64_t kSegmentKeys = 1024;  ///< keys summed from zero before they are merged

/// What a row has summed: of its largest score, the weights by lane, the weighted values.
struct AttentionSums {
  float* largest = nullptr;  ///< [queries]
  float* weights = nullptr;  ///< [queries][16]
  float* values = nullptr;   ///< [queries][width]
};

constexpr std::int64_t attend_scratch_floats(std::int64_t queries, std::int64_t head_dim) {
  const std::int64_t width = round_up(head_dim, kPanelColumns);
  const std::int64_t sums = round_up(queries, kPanelColumns) + queries * (kPanelColumns + width);
  return queries * (width + kKeyBlock) + round_up(queries, kPanelColumns) + 2 * sums;
}

/// One type for each form of lanes, so that no two instruction sets share its functions (vector_table.h).
template <class V>
struct AttentionScratch {
  float* queries;  ///< [queries][width]
  float* scores;   ///< [queries][kKeyBlock]
  float* shrinks;  ///< [queries]: what the block at hand rescales earlier sums by
  AttentionSums part;
  AttentionSums whole;

  AttentionScratch(float* memory, std::int64_t count, std::int64_t width) {
    queries = memory;
    scores = queries + count * width;
    shrinks = scores + count * kKeyBlock;
    float* next = shrinks + round_up(count, kPanelColumns);
    for (AttentionSums* sums : {&part, &whole}) {
      sums->largest = next;
      sums->weights = sums->largest + round_up(count, kPanelColumns);
      sums->values = sums->weights + count * kPanelColumns;
      next = sums->values + count * width;
    }
  }
};

}  // namespace sextant::kernels
