// Finding the pattern of a pace.
//
// Say a hop of chunk 0 takes a slots and one of chunk 1 takes b, on the way forward (down chunk 0, up chunk
// 1) and backward (down chunk 1, up chunk 0: b' = a and a' = b). At stage i the four passes then lie at
//
//   F0 = a·i     F1 = F1(P-1) + b·(P-1-i)     B1 = B1(0) + a·i     B0 = B0(P-1) + b·(P-1-i)
//
// A stage's passes of all micro-batches must fall into different slots, so the four must differ modulo 6 on
// every stage. The pace fixes the slopes; what is free is how long to wait at the three turns (before F1,
// B1 and B0). Waiting costs time at the start and the end of a step and may cost memory.
//
// With a + b = 2, 3, 4, 6 the activations of both chunks together live 2(a+b)·P slots, whatever the stage:
// (a+b)/6 of 1F1B's P micro-batches. a + b = 2 is V-Min, 3 V-Half, 6 the memory of ZB-V.
//
// All waits below an interval are tried (216) and the pattern is chosen by: least memory; B1 on stage 0 two
// slots after a multiple of 6 (squeezing then leaves the least bubble: checked for 2 to 16 stages by trying
// all, see docs/design/pipeline.md); shortest waits.
#include "pipeline/building_block.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <tuple>

#include "base/check.h"

namespace sextant::pipeline {
namespace {

using Slots = std::array<int, kPasses>;

struct Slopes {
  int chunk0 = 0;
  int chunk1 = 0;
};

Slopes slopes_of(Pace pace) {
  switch (pace) {
    case Pace::kThird:
      return {1, 1};
    case Pace::kHalf:
      return {2, 1};
    case Pace::kTwoThirds:
      return {2, 2};
    case Pace::kWhole:
      return {4, 2};
  }
  SEXTANT_CHECK(false);
  return {};
}

/// Waits before F1, B1 and B0.
using Waits = std::array<int, 3>;

std::vector<Slots> place(int stages, Slopes slopes, Waits waits) {
  const int last = stages - 1;
  const int forward1 = slopes.chunk0 * last + 1 + waits[0];
  const int input1 = forward1 + slopes.chunk1 * last + 1 + waits[1];
  const int input0 = input1 + slopes.chunk0 * last + 1 + waits[2];
  std::vector<Slots> slots;
  for (int stage = 0; stage < stages; ++stage) {
    const int behind = last - stage;
    slots.push_back({slopes.chunk0 * stage, forward1 + slopes.chunk1 * behind, input1 + slopes.chunk0 * stage,
                     input0 + slopes.chunk1 * behind});
  }
  return slots;
}

bool disjoint(const Slots& slots) {
  unsigned used = 0;
  for (const int slot : slots) used |= 1U << static_cast<unsigned>(slot % kIntervalSlots);
  return std::popcount(used) == kPasses;
}

/// Slots of W of chunk 1 and of chunk 0: the first ones free after their B.
std::array<int, 2> weight_slots(const Slots& slots) {
  unsigned used = 0;
  for (const int slot : slots) used |= 1U << static_cast<unsigned>(slot % kIntervalSlots);
  std::array<int, 2> weights{};
  for (std::size_t at = 0; at < 2; ++at) {
    int slot = slots[2 + at] + 1;
    while ((used >> static_cast<unsigned>(slot % kIntervalSlots) & 1U) != 0) ++slot;
    used |= 1U << static_cast<unsigned>(slot % kIntervalSlots);
    weights[at] = slot;
  }
  return weights;
}

/// Passes of one chunk alive in slot `at` of the steady state: micro-batches k with from <= at - 6k <= to.
int alive(int from, int to, int at) {
  const auto floor_div = [](int value) {
    return value >= 0 ? value / kIntervalSlots : -((-value + kIntervalSlots - 1) / kIntervalSlots);
  };
  return floor_div(at - from) - floor_div(at - to - 1);
}

int steady_live(const Slots& slots) {
  const auto weights = weight_slots(slots);
  int peak = 0;
  for (int at = 0; at < kIntervalSlots; ++at) {
    peak = std::max(peak, alive(slots[0], weights[1], at) + alive(slots[1], weights[0], at));
  }
  return peak;
}

}  // namespace

BuildingBlock building_block(int stages, Pace pace) {
  const Slopes slopes = slopes_of(pace);
  using Rank = std::tuple<int, bool, int>;  // live chunk passes, B1 elsewhere, waits
  std::optional<Rank> best;
  BuildingBlock block;
  for (int wait = 0; wait < kIntervalSlots * kIntervalSlots * kIntervalSlots; ++wait) {
    const Waits waits = {wait / (kIntervalSlots * kIntervalSlots), wait / kIntervalSlots % kIntervalSlots,
                         wait % kIntervalSlots};
    auto slots = place(stages, slopes, waits);
    if (!std::ranges::all_of(slots, disjoint)) continue;
    std::vector<int> live;
    for (const Slots& of_stage : slots) live.push_back(steady_live(of_stage));
    const Rank rank{std::ranges::max(live), slots[0][2] % kIntervalSlots != 2,
                    waits[0] + waits[1] + waits[2]};
    if (best && rank >= *best) continue;
    best = rank;
    block = {std::move(slots), std::move(live)};
  }
  SEXTANT_CHECK(best.has_value());  // every pace has waits without collisions
  return block;
}

}  // namespace sextant::pipeline
