// A search replays millions of schedules: after the first sight of a shape nothing may be allocated.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "pipeline/live.h"
#include "pipeline/replay.h"

namespace {
thread_local long allocations = 0;
}  // namespace

// Replaced for the whole test program, to count.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace sextant::pipeline {
namespace {

TEST(Allocations, AReplayOfAKnownShapeMakesNone) {
  const Shape shape{.stages = 8, .chunks = 2, .microbatches = 64};
  Shape longer = shape;
  longer.microbatches = 640;
  Durations durations = uniform_durations(shape, 1, 1, 1, 0.01);
  Replayer replayer;
  replayer.run(Algorithm::kInterleaved, shape, durations);
  const long before = allocations;
  EXPECT_GT(before, 0);
  for (const double factor : {1.0, 1.1, 1.2}) {
    durations.forward_s.back() = factor;
    replayer.run(Algorithm::kInterleaved, shape, durations);
    replayer.run(Algorithm::kInterleaved, longer, durations);  // differs by whole groups only
  }
  EXPECT_EQ(allocations, before);
}

TEST(Allocations, LiveCountsIntoASpanMakeNone) {
  const Shape shape{.stages = 8, .chunks = 4, .microbatches = 64};
  std::vector<int> live(4);
  const std::vector<double> bytes(4, 1.0);
  const long before = allocations;
  live_per_chunk(Algorithm::kInterleaved, shape, 3, live);
  EXPECT_GT(peak_live_bytes(Algorithm::kInterleaved, shape, 3, bytes), 0.0);
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace sextant::pipeline
