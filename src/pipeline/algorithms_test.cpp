// What each algorithm promises, for every number of stages from 1 to 16.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "pipeline/check.h"
#include "pipeline/live.h"
#include "pipeline/replay.h"

namespace sextant::pipeline {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;

constexpr int kMostStages = 16;

Shape shape_of(Algorithm algorithm, int stages, int microbatches) {
  return {.stages = stages, .chunks = std::max(1, required_chunks(algorithm)), .microbatches = microbatches};
}

/// F = B = W = 1 for a stage, no sends.
Replay unit_replay(Algorithm algorithm, int stages, int microbatches) {
  const Shape shape = shape_of(algorithm, stages, microbatches);
  return replay(algorithm, shape, uniform_durations(shape, 1, 1, 1));
}

double most(const std::vector<double>& values) { return std::ranges::max(values); }

/// Calls `body(p, m)` for 1 to 16 stages and a sample of micro-batches from 1 on.
template <typename Body>
void for_every_size(Body body) {
  for (int p = 1; p <= kMostStages; ++p) {
    for (int m = 1; m <= 5 * p + 3; m += (m < 2 * p + 2 ? 1 : 3)) body(p, m);
  }
}

// Qi et al. 2024 (ZB-H1): one third of 1F1B's bubble at its memory. Below p micro-batches every stage is
// waiting: 2p-1 to get there and back, and two units for each further micro-batch.
TEST(ZeroBubbleH1, HasAThirdOfTheBubbleAtTheSameMemory) {
  for_every_size([](int p, int m) {
    const Replay r = unit_replay(Algorithm::kZeroBubbleH1, p, m);
    EXPECT_DOUBLE_EQ(r.makespan_s, m >= p ? 3.0 * m + p - 1 : 2.0 * m + 2 * p - 1) << p << ' ' << m;
    EXPECT_THAT(r.peak_live_chunks, Each(Le(std::min(m, p))));
  });
}

// ZB-H2: no stage is idle between its first and its last step; what is left of the makespan is the way of
// the first micro-batch to the last stage.
TEST(ZeroBubbleH2, KeepsEveryStageBusyAtTwiceTheMemory) {
  for_every_size([](int p, int m) {
    const Replay r = unit_replay(Algorithm::kZeroBubbleH2, p, m);
    if (m >= 2 * p - 1) {
      EXPECT_DOUBLE_EQ(r.span_s, 3.0 * m) << p << ' ' << m;
      EXPECT_DOUBLE_EQ(r.makespan_s, 3.0 * m + p - 1) << p << ' ' << m;
    }
    EXPECT_THAT(r.peak_live_chunks, Each(Le(2 * p - 1)));
  });
}

TEST(ZeroBubbleV, HasNoBubbleWithinAStageAtTheMemoryOf1F1B) {
  for_every_size([](int p, int m) {
    const Replay r = unit_replay(Algorithm::kZeroBubbleV, p, m);
    EXPECT_GE(r.makespan_s, 3.0 * m + (p - 1) / 2.0) << p << ' ' << m;
    if (m >= 2 * p - 1) {
      EXPECT_DOUBLE_EQ(r.makespan_s, 3.0 * m + (p - 1) / 2.0) << p << ' ' << m;
      EXPECT_DOUBLE_EQ(r.span_s, 3.0 * m) << p << ' ' << m;
    }
    EXPECT_LE(most(r.peak_live_microbatches), p) << p << ' ' << m;
  });
}

TEST(VHalf, StaysWithinHalfTheMemoryAndOneMore) {
  for_every_size([](int p, int m) {
    EXPECT_LE(most(unit_replay(Algorithm::kVHalf, p, m).peak_live_microbatches), p / 2.0 + 1)
        << p << ' ' << m;
  });
}

TEST(VMin, StaysWithinAThirdOfTheMemoryAndTwoMore) {
  for_every_size([](int p, int m) {
    EXPECT_LE(most(unit_replay(Algorithm::kVMin, p, m).peak_live_microbatches), std::max(2.0, p / 3.0 + 2))
        << p << ' ' << m;
  });
}

// The bubbles that AMD's Primus simulator and the zero-bubble project's generator find for F = B = W.
TEST(VHalfAndVMin, HaveTheBubblesOfTheirReference) {
  const auto bubble = [](Algorithm algorithm, int p) {
    const int m = 4 * p;
    return unit_replay(algorithm, p, m).makespan_s - 3.0 * m;
  };
  EXPECT_DOUBLE_EQ(bubble(Algorithm::kVHalf, 2), 0.5);
  EXPECT_DOUBLE_EQ(bubble(Algorithm::kVHalf, 4), 2.5);
  EXPECT_DOUBLE_EQ(bubble(Algorithm::kVHalf, 8), 8.5);
  EXPECT_LE(bubble(Algorithm::kVMin, 2), 1.0);
  EXPECT_DOUBLE_EQ(bubble(Algorithm::kVMin, 4), 5.5);
  EXPECT_LE(bubble(Algorithm::kVMin, 8), 13.0);
}

// deepseek-ai/DualPipe, README: bubble (PP/2-1)(F&B + B - 3W) for PP = 2P virtual stages, which is 2(P-1)
// chunk passes, P-1 of a stage, when F = B = W and F&B is F + B + W; PP+1 chunk passes alive.
TEST(DualPipeV, HasTheBubbleAndTheMemoryThatItsAuthorsState) {
  for (int p = 1; p <= kMostStages; ++p) {
    for (int m = 2 * p; m <= 6 * p; m += p) {
      const Replay r = unit_replay(Algorithm::kDualPipeV, p, m);
      EXPECT_LE(r.span_s, 3.0 * m + p - 1) << p << ' ' << m;
      EXPECT_THAT(r.peak_live_chunks, Each(Le(2 * p + 1))) << p << ' ' << m;
    }
  }
  EXPECT_THAT(
      unschedulable(Algorithm::kDualPipeV, {.stages = 4, .chunks = 2, .microbatches = 7}).value_or(""),
      HasSubstr("M >= 2·PP"));
}

struct Reference {
  Algorithm algorithm;
  int stages;
  int microbatches;
  double span_s;
  double peak_live;  // micro-batches
};

// Spans of the zero-bubble project's generators with F = B = W = 10 a chunk and 1 for a send (its printed
// bubble fractions b give span = 60·M / (1 - b); ZB1P is printed as a length) and the memory that its papers
// state: P for ZB1P and ZBV, V-Half P/2 + 1, V-Min's steady state.
TEST(Spans, AreWithinOnePercentOfTheZeroBubbleProjects) {
  const Reference references[] = {
      {Algorithm::kZeroBubbleV, 4, 16, 974, 4},     {Algorithm::kZeroBubbleV, 8, 32, 1960, 8},
      {Algorithm::kZeroBubbleV, 8, 64, 3880, 8},    {Algorithm::kZeroBubbleV, 16, 64, 3928, 16},
      {Algorithm::kZeroBubbleV, 16, 128, 7768, 16}, {Algorithm::kVHalf, 4, 16, 1032, 3},
      {Algorithm::kVHalf, 8, 32, 2138, 5},          {Algorithm::kVHalf, 8, 64, 4058, 5},
      {Algorithm::kVHalf, 16, 64, 4352, 9},         {Algorithm::kVHalf, 16, 128, 8192, 9},
      {Algorithm::kVMin, 4, 16, 1142, 2},           {Algorithm::kVMin, 8, 32, 2378, 4},
      {Algorithm::kVMin, 8, 64, 4464, 4},           {Algorithm::kVMin, 16, 64, 4842, 6},
      {Algorithm::kVMin, 16, 128, 9040, 6},         {Algorithm::kZeroBubbleH1, 4, 16, 522, 4},
      {Algorithm::kZeroBubbleH1, 8, 32, 1058, 8},   {Algorithm::kZeroBubbleH1, 8, 64, 2018, 8},
  };
  for (const Reference& reference : references) {
    const Shape shape = shape_of(reference.algorithm, reference.stages, reference.microbatches);
    const double pass_s = 10.0 * shape.chunks;
    const Replay r = replay(reference.algorithm, shape, uniform_durations(shape, pass_s, pass_s, pass_s, 1));
    EXPECT_LE(r.span_s, 1.01 * reference.span_s) << name(reference.algorithm) << ' ' << reference.stages;
    EXPECT_LE(most(r.peak_live_microbatches), reference.peak_live) << name(reference.algorithm);
    std::printf("%-6s P=%2d M=%3d span %6.0f reference %6.0f (%+.1f %%) peak %.1f reference %.1f\n",
                std::string(name(reference.algorithm)).c_str(), reference.stages, reference.microbatches,
                r.span_s, reference.span_s, 100 * (r.span_s / reference.span_s - 1),
                most(r.peak_live_microbatches), reference.peak_live);
  }
}

TEST(EveryAlgorithm, IsFreeOfFaultsForAllSizes) {
  for (const Algorithm algorithm : all_algorithms()) {
    for_every_size([&](int p, int m) {
      Shape shape = shape_of(algorithm, p, m);
      if (algorithm == Algorithm::kInterleaved) shape.chunks = 3;
      if (unschedulable(algorithm, shape)) return;
      const Durations durations = uniform_durations(shape, 1, 1, 1, 0.25);
      EXPECT_THAT(faults(algorithm, shape, durations, replay(algorithm, shape, durations),
                         operations(algorithm, shape, durations)),
                  IsEmpty())
          << name(algorithm) << ' ' << p << ' ' << m;
    });
  }
}

// The preparation aborts when an order does not repeat as promised.
TEST(EveryAlgorithm, RepeatsItsMiddle) {
  for (const Algorithm algorithm : all_algorithms()) {
    if (algorithm == Algorithm::kGpipe) continue;
    for (int p = 1; p <= 24; p += (p < kMostStages ? 1 : 4)) {
      Shape shape = shape_of(algorithm, p, 12 * p + 40);
      if (algorithm == Algorithm::kInterleaved) shape.chunks = 2;
      if (unschedulable(algorithm, shape)) continue;
      Replayer replayer;
      const Durations durations = uniform_durations(shape, 1, 1, 1, 0.0625);
      const double skipped_s = replayer.run(algorithm, shape, durations).makespan_s;
      EXPECT_LT(replayer.walked_steps(), 3LL * p * shape.chunks * shape.microbatches) << name(algorithm) << p;
      replayer.set_skip_periods(false);
      EXPECT_NEAR(replayer.run(algorithm, shape, durations).makespan_s, skipped_s, 1e-9)
          << name(algorithm) << ' ' << p;
    }
  }
}

}  // namespace
}  // namespace sextant::pipeline
