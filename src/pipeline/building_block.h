// The repeating pattern of a V-shaped schedule: where one micro-batch's passes lie, in slots of one pass.
// Internal to the room.
//
// Qi et al., Pipeline Parallelism with Controllable Memory (2024): when every micro-batch is processed in the
// same pattern, one interval later than the one before, a stage's memory is how long the pattern keeps its
// activations, divided by the interval. With two chunks of F, B and W the interval is 6 slots, and what
// decides is the pace: how many slots it takes from a stage to the next.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "pipeline/schedule.h"

namespace sextant::pipeline {

/// Slots from a micro-batch to the next: F, B and W of two chunks.
inline constexpr int kIntervalSlots = 6;

/// The passes that the pattern places, in the order in which a micro-batch takes them. Weight gradients go
/// into the slots between.
enum class Pass : std::uint8_t { kForward0, kForward1, kInput1, kInput0 };
inline constexpr int kPasses = 4;

/// Slots a micro-batch takes for a hop of chunk 0 and one of chunk 1, forwards and backwards alike. The sum
/// decides the memory: (sum)/6 of 1F1B's.
enum class Pace : std::uint8_t { kThird, kHalf, kTwoThirds, kWhole };
inline constexpr std::array kPaces = {Pace::kThird, Pace::kHalf, Pace::kTwoThirds, Pace::kWhole};

struct BuildingBlock {
  /// Per stage, the slot of each pass of micro-batch 0; that of micro-batch k is 6k later.
  std::vector<std::array<int, kPasses>> slots;
  /// Per stage, chunk passes alive at the peak of the steady state.
  std::vector<int> live_chunks;
};

/// The pattern of a pace for a number of stages. No two passes of a stage fall into the same slot.
BuildingBlock building_block(int stages, Pace pace);

}  // namespace sextant::pipeline
