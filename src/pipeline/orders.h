// The order of steps on one stage, one function per algorithm, for shapes that `unschedulable` lets through.
// Internal to the room: others call `generate` (schedule.h).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "pipeline/building_block.h"
#include "pipeline/schedule.h"

namespace sextant::pipeline {

std::vector<Step> one_forward_one_backward_order(const Shape& shape, int stage);
std::vector<Step> interleaved_order(const Shape& shape, int stage);
std::vector<Step> gpipe_order(const Shape& shape);
std::vector<Step> zero_bubble_v_order(const Shape& shape, int stage);  ///< requires M >= 2P-1
std::vector<Step> dualpipe_v_order(const Shape& shape, int stage);

/// How far a stage of a zero-bubble schedule with one chunk runs ahead with forwards, and behind with weight
/// gradients (zero_bubble.cpp).
struct Reach {
  int ahead = 0;   ///< forwards before the first backward may follow, beside the one of the steady state
  int behind = 0;  ///< input gradients whose weight gradient waits
};
Reach zero_bubble_h1_reach(const Shape& shape, int stage);
Reach zero_bubble_h2_reach(const Shape& shape, int stage, std::span<const int> max_live);
std::vector<Step> zero_bubble_order(const Shape& shape, Reach reach);

/// The pace that a V-shaped algorithm runs at when no limit forces it below, and its order at some pace: as
/// far within `max_live` as that pace allows.
Pace own_pace(Algorithm algorithm);
std::vector<std::vector<Step>> orders_at_pace(Algorithm algorithm, const Shape& shape, Pace pace,
                                              std::span<const int> max_live);

/// The V-shaped orders that come from building blocks (controlled_memory.h): v-half and v-min, and zb-v with
/// less than 2P-1 micro-batches or within limits. Nothing when no pace keeps within the limits.
std::optional<std::vector<std::vector<Step>>> controlled_memory_orders(Algorithm algorithm,
                                                                       const Shape& shape,
                                                                       std::span<const int> max_live);

/// Chunk passes that 1F1B or interleaved 1F1B sends forward on `stage` before its first backward may follow;
/// one more is alive in the steady state.
int warmup_passes(Algorithm algorithm, const Shape& shape, int stage);

/// The forwards of an interleaved stage, one after the other: N micro-batches through chunk 0, the same N
/// through chunk 1, …, then the next N; a shorter last group likewise. Backwards follow the same sequence
/// with the chunks counted from the other end.
class InterleavedCursor {
 public:
  explicit InterleavedCursor(const Shape& shape);

  int chunk() const { return chunk_; }
  int microbatch() const { return first_ + offset_; }
  void advance();

 private:
  int chunks_;
  int microbatches_;
  int group_;
  int first_ = 0;  // first micro-batch of the current group
  int size_ = 0;   // micro-batches in it
  int chunk_ = 0;
  int offset_ = 0;  // micro-batch within it
};

/// How an order grows with the number of micro-batches: by whole periods in its middle.
struct Period {
  int microbatches = 0;  ///< micro-batches in a period; 0: the order has no such middle
  int warm_microbatches =
      0;  ///< from here on (in steps of a period) a further period only lengthens the middle
};
Period period_of(Algorithm algorithm, const Shape& shape);

/// The smallest shape whose order has the same beginning, middle and end: M less whole periods.
Shape without_repeats(Algorithm algorithm, const Shape& shape);

}  // namespace sextant::pipeline
