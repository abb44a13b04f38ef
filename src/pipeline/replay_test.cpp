#include "pipeline/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/check.h"
#include "pipeline/live.h"

namespace sextant::pipeline {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Algorithm k1F1B = Algorithm::kOneForwardOneBackward;
constexpr Algorithm kInterleaved = Algorithm::kInterleaved;
constexpr Algorithm kGpipe = Algorithm::kGpipe;

Replay unit(Algorithm algorithm, const Shape& shape) {
  return replay(algorithm, shape, uniform_durations(shape, 1.0, 1.0, 1.0));
}

TEST(Makespan, OneForwardOneBackwardTakesThreeTimesMicrobatchesPlusStagesLessOne) {
  for (int p = 1; p <= 16; ++p) {
    for (const int m : {1, 2, 3, 5, 8, 16, 31, 64, 200}) {
      EXPECT_EQ(unit(k1F1B, {.stages = p, .microbatches = m}).makespan_s, 3.0 * (m + p - 1)) << p << ' ' << m;
    }
  }
}

TEST(Makespan, GpipeTakesAsLongAsOneForwardOneBackward) {
  for (const int p : {1, 2, 5, 8}) {
    for (const int m : {1, 4, 9}) {
      EXPECT_EQ(unit(kGpipe, {.stages = p, .microbatches = m}).makespan_s, 3.0 * (m + p - 1));
    }
  }
}

// Narayanan et al. 2021: interleaving divides the bubble by the number of chunks. 1/V of a stage is a power
// of two here, so the values are exact.
TEST(Makespan, InterleavingDividesTheBubbleByTheChunks) {
  for (const int p : {1, 2, 3, 4, 7, 8, 16}) {
    for (const int v : {2, 4, 8}) {
      for (const int groups : {1, 2, 3, 4, 9, 20}) {
        const int m = groups * p;
        EXPECT_EQ(unit(kInterleaved, {.stages = p, .chunks = v, .microbatches = m}).makespan_s,
                  3.0 * m + 3.0 * (p - 1) / v)
            << p << ' ' << v << ' ' << m;
      }
    }
  }
}

TEST(Makespan, InterleavingWithThreeOrSixChunksToo) {
  const Shape shape{.stages = 8, .chunks = 3, .microbatches = 64};
  EXPECT_NEAR(unit(kInterleaved, shape).makespan_s, 3.0 * 64 + 3.0 * 7 / 3, 1e-9);
  const Shape six{.stages = 16, .chunks = 6, .microbatches = 16};
  EXPECT_NEAR(unit(kInterleaved, six).makespan_s, 3.0 * 16 + 3.0 * 15 / 6, 1e-9);
}

// AMD-AGI/Primus PR 1032, pytorch/torchtitan issue 775: F = 1, backward = 2, no sends.
TEST(FewMicrobatches, TakeAsLongAsPipelineFillingSays) {
  const auto makespan = [](int p, int m) { return unit(k1F1B, {.stages = p, .microbatches = m}).makespan_s; };
  EXPECT_EQ(makespan(4, 2), 15.0);
  EXPECT_EQ(makespan(4, 1), 12.0);
  EXPECT_EQ(makespan(8, 4), 33.0);
  EXPECT_EQ(makespan(4, 8), 33.0);
}

TEST(FewMicrobatches, RunEachForwardAndBackwardOnceOnEachRank) {
  const Shape shape{.stages = 4, .microbatches = 2};
  const auto all = operations(k1F1B, shape, uniform_durations(shape, 1, 1, 1));
  ASSERT_EQ(all.size(), 16U);
  for (const Operation& operation : all) {
    EXPECT_GE(operation.microbatch, 0);
    EXPECT_LT(operation.microbatch, 2);
  }
  EXPECT_THAT(unit(k1F1B, shape).peak_live_chunks, ElementsAre(2, 2, 2, 1));
}

// deepseek-ai/DeepSeek-V3 issue 724: bubble as a share of the ideal time, activations as a factor of 1F1B's.
TEST(Bubble, OfEightStagesAndThirtyTwoMicrobatches) {
  const auto bubble = [](const Replay& r) { return r.makespan_s / r.ideal_s - 1.0; };
  const Replay plain = unit(k1F1B, {.stages = 8, .microbatches = 32});
  EXPECT_DOUBLE_EQ(bubble(plain), 0.21875);
  EXPECT_EQ(plain.peak_live_microbatches[0], 8.0);
  const Replay interleaved = unit(kInterleaved, {.stages = 8, .chunks = 4, .microbatches = 32});
  EXPECT_DOUBLE_EQ(bubble(interleaved), 0.0546875);
  EXPECT_EQ(interleaved.peak_live_microbatches[0] / plain.peak_live_microbatches[0], 1.21875);
}

TEST(Span, LeavesOutTheFillingThatOtherStagesDo) {
  // Stage 0 of P = 2, M = 1 runs from 0 to 6 (F, then waits for stage 1's three units, then two more).
  const Replay r = unit(k1F1B, {.stages = 2, .microbatches = 1});
  EXPECT_THAT(r.first_start_s, ElementsAre(0.0, 1.0));
  EXPECT_THAT(r.last_end_s, ElementsAre(6.0, 4.0));
  EXPECT_EQ(r.makespan_s, 6.0);
  EXPECT_EQ(r.span_s, 6.0);
  EXPECT_THAT(r.busy_s, ElementsAre(3.0, 3.0));
}

TEST(UnequalStages, TheSlowestOneSetsThePace) {
  const Shape shape{.stages = 2, .microbatches = 10};
  Durations durations = uniform_durations(shape, 1, 1, 1);
  durations.forward_s[1] =
      2.0;  // stage 1: 4 units per micro-batch, its first forward after 1, 2 units of stage 0 last
  EXPECT_EQ(replay(k1F1B, shape, durations).makespan_s, 1.0 + 10 * 4.0 + 2.0);
  EXPECT_EQ(replay(k1F1B, shape, durations).ideal_s, 40.0);
}

TEST(Chunks, TakeWhatTheyAreGiven) {
  const Shape shape{.stages = 1, .chunks = 2, .microbatches = 3};
  const Durations durations{
      .forward_s = {1.0, 10.0}, .backward_input_s = {2.0, 20.0}, .backward_weight_s = {4.0, 40.0}};
  const Replay r = replay(kInterleaved, shape, durations);
  EXPECT_EQ(r.makespan_s, 3 * 77.0);
  EXPECT_EQ(r.busy_s[0], 3 * 77.0);
}

TEST(Sends, OverlappedAddOneWayDownAndOneWayUp) {
  // One micro-batch through 4 stages: 4 F, 3 sends, 4 backwards, 3 sends.
  const Shape shape{.stages = 4, .microbatches = 1};
  Durations durations = uniform_durations(shape, 1, 1, 1, 0.5);
  EXPECT_EQ(replay(k1F1B, shape, durations).makespan_s, 12.0 + 6 * 0.5);
  durations.send_latency_s = 0.25;
  EXPECT_EQ(replay(k1F1B, shape, durations).makespan_s, 12.0 + 6 * 0.75);
  durations.overlap = false;
  EXPECT_EQ(replay(k1F1B, shape, durations).makespan_s, 12.0 + 6 * 0.75);
}

TEST(Sends, FromTheLastStageBackToTheFirstCostLikeAnyOther) {
  // Two chunks on 2 stages, one group of 2: the first micro-batch makes 3 hops down and 3 up.
  const Shape shape{.stages = 2, .chunks = 2, .microbatches = 2};
  const auto all = operations(kInterleaved, shape, uniform_durations(shape, 2, 2, 2, 0.5));
  for (const Operation& operation : all) {
    if (operation.kind != Kind::kForward || operation.microbatch != 0) continue;
    const double expected_s = virtual_stage(kInterleaved, shape, {operation.stage, operation.chunk}) * 1.5;
    EXPECT_EQ(operation.start_s,
              std::max(expected_s, operation.chunk == 1 && operation.stage == 0 ? 3.0 : 0.0));
  }
}

TEST(Sends, BetweenChunksOfOneStageCostNothing) {
  // A V on 2 stages: virtual stages 1 and 2 both live on stage 1.
  const Shape shape{.stages = 2, .chunks = 2, .microbatches = 1};
  const std::vector<std::vector<Step>> orders = {
      {{0, 0, Kind::kForward}, {1, 0, Kind::kForward}, {1, 0, Kind::kBackward}, {0, 0, Kind::kBackward}},
      {{0, 0, Kind::kForward}, {1, 0, Kind::kForward}, {1, 0, Kind::kBackward}, {0, 0, Kind::kBackward}}};
  const Durations durations = uniform_durations(shape, 2, 2, 2, 10.0);
  Replayer replayer;
  const Replay& r = replayer.run(Algorithm::kZeroBubbleV, shape, durations, orders);
  EXPECT_EQ(r.makespan_s, 4 * 1.0 + 4 * 2.0 + 4 * 10.0);
  EXPECT_THAT(faults(Algorithm::kZeroBubbleV, shape, durations, r,
                     operations(Algorithm::kZeroBubbleV, shape, durations, orders)),
              IsEmpty());
}

TEST(Sends, OneLinkCarriesOneMessageAtATime) {
  // Stage 0 makes an output every second, the link takes 3 s for each: the link sets the pace.
  const Shape shape{.stages = 2, .microbatches = 4};
  Durations durations = uniform_durations(shape, 1, 0, 0);
  durations.forward_send_s = {3.0, 0.0};
  durations.backward_send_s = {0.0, 0.0};
  EXPECT_EQ(replay(kGpipe, shape, durations).makespan_s, 1.0 + 4 * 3.0 + 1.0);
}

TEST(Sends, LatencyLetsMessagesFollowEachOther) {
  const Shape shape{.stages = 2, .microbatches = 4};
  Durations durations = uniform_durations(shape, 1, 0, 0);
  durations.send_latency_s = 3.0;
  // The last forward leaves at 4, arrives at 7, is done at 8; its gradient travels 3 s.
  EXPECT_EQ(replay(kGpipe, shape, durations).makespan_s, 4.0 + 3.0 + 1.0 + 3.0);
}

TEST(Sends, WithoutOverlapBlockTheSender) {
  // Middle stage of 3: each micro-batch costs 3 units of compute and two sends of 1/2.
  const Shape shape{.stages = 3, .microbatches = 100};
  Durations durations = uniform_durations(shape, 1, 1, 1, 0.5);
  durations.overlap = false;
  const Replay r = replay(k1F1B, shape, durations);
  EXPECT_THAT(r.blocked_s, ElementsAre(50.0, 100.0, 50.0));
  EXPECT_GE(r.makespan_s, 400.0);
  EXPECT_EQ(r.ideal_s, 300.0);
  durations.overlap = true;
  EXPECT_THAT(replay(k1F1B, shape, durations).blocked_s, Each(0.0));
}

// NVIDIA/Megatron-LM issue 1535 and NVIDIA-NeMo/Speech PR 9482: virtual stages multiply the traffic. 64 MiB
// per hop, 1 s of compute per micro-batch and rank, PP = 4, no overlap.
class SlowAndFastLinks : public testing::Test {
 protected:
  static double makespan_s(int chunks, int microbatches, double link_gib_per_s) {
    const Shape shape{.stages = 4, .chunks = chunks, .microbatches = microbatches};
    Durations durations = uniform_durations(shape, 1.0 / 3, 1.0 / 3, 1.0 / 3, 0.0625 / link_gib_per_s);
    durations.overlap = false;
    return replay(chunks == 1 ? k1F1B : kInterleaved, shape, durations).makespan_s;
  }
};

TEST_F(SlowAndFastLinks, OnASlowLinkVirtualStagesLose) {
  EXPECT_NEAR(makespan_s(1, 64, 1.0), 75.0, 1.0);
  EXPECT_NEAR(makespan_s(4, 64, 1.0), 97.0, 1.0);
}

TEST_F(SlowAndFastLinks, OnAFastLinkVirtualStagesWin) {
  EXPECT_NEAR(makespan_s(1, 8, 200.0), 11.0, 0.1);
  EXPECT_NEAR(makespan_s(4, 8, 200.0), 8.8, 0.1);
}

TEST(SplitBackward, WeightGradientsWaitForNobodyAndAreCounted) {
  // ZB-H1 by hand (Qi et al. 2024, figure 2), 2 stages, 2 micro-batches: 3m + (p-1) = 7.
  const Shape shape{.stages = 2, .microbatches = 2};
  constexpr Kind kF = Kind::kForward;
  constexpr Kind kB = Kind::kBackwardInput;
  constexpr Kind kW = Kind::kBackwardWeight;
  const std::vector<std::vector<Step>> orders = {
      {{0, 0, kF}, {0, 1, kF}, {0, 0, kB}, {0, 0, kW}, {0, 1, kB}, {0, 1, kW}},
      {{0, 0, kF}, {0, 0, kB}, {0, 1, kF}, {0, 1, kB}, {0, 0, kW}, {0, 1, kW}}};
  const Durations durations = uniform_durations(shape, 1, 1, 1);
  Replayer replayer;
  const Replay& r = replayer.run(Algorithm::kZeroBubbleH1, shape, durations, orders);
  EXPECT_EQ(r.makespan_s, 7.0);
  EXPECT_EQ(r.span_s, 7.0);
  EXPECT_THAT(r.peak_live_chunks, ElementsAre(2, 2));
  EXPECT_THAT(r.peak_pending_weight_gradients, ElementsAre(1, 2));
  EXPECT_THAT(faults(Algorithm::kZeroBubbleH1, shape, durations, r,
                     operations(Algorithm::kZeroBubbleH1, shape, durations, orders)),
              IsEmpty());
}

TEST(Skipping, WalksFewStepsWhenStagesAreEqual) {
  const Shape shape{.stages = 8, .chunks = 2, .microbatches = 1024};
  const Durations durations = uniform_durations(shape, 1, 1, 1, 0.01);
  Replayer replayer;
  const Replay skipped = replayer.run(kInterleaved, shape, durations);
  EXPECT_LT(replayer.walked_steps(), 2 * 8 * 2 * 64);
  replayer.set_skip_periods(false);
  const Replay& walked = replayer.run(kInterleaved, shape, durations);
  EXPECT_EQ(replayer.walked_steps(), 2 * 8 * 2 * 1024);
  EXPECT_EQ(skipped.makespan_s, walked.makespan_s);
  EXPECT_EQ(skipped.last_end_s, walked.last_end_s);
}

TEST(Skipping, FindsARhythmOfSeveralMicrobatches) {
  // A long latency lets stage 0 send in bursts of P micro-batches, once per round trip.
  const Shape shape{.stages = 4, .microbatches = 403};
  Durations durations = uniform_durations(shape, 1, 1, 1);
  durations.send_latency_s = 50.0;
  Replayer replayer;
  const double skipped_s = replayer.run(k1F1B, shape, durations).makespan_s;
  EXPECT_LT(replayer.walked_steps(), 2 * 4 * 60);
  replayer.set_skip_periods(false);
  EXPECT_EQ(replayer.run(k1F1B, shape, durations).makespan_s, skipped_s);
}

TEST(Skipping, StagesThatDifferInTheLastBitStillRepeat) {
  const Shape shape{.stages = 4, .microbatches = 1000};
  Durations durations = uniform_durations(shape, 0.3, 0.3, 0.3);
  durations.forward_s[1] = 0.1 + 0.2;
  durations.backward_input_s[2] = 0.1 + 0.2;
  Replayer replayer;
  const double skipped_s = replayer.run(k1F1B, shape, durations).makespan_s;
  EXPECT_LT(replayer.walked_steps(), 2 * 4 * 100);
  EXPECT_NEAR(skipped_s, 0.9 * 1003, 1e-9);
}

TEST(ZeroDurations, TakeNoTime) {
  const Shape shape{.stages = 4, .chunks = 2, .microbatches = 64};
  const Replay r = replay(kInterleaved, shape, uniform_durations(shape, 0, 0, 0));
  EXPECT_EQ(r.makespan_s, 0.0);
  EXPECT_EQ(r.peak_live_chunks[0], 11);
}

TEST(OneReplayer, AnswersTheSameWhateverItRanBefore) {
  Replayer replayer;
  const Shape small{.stages = 2, .microbatches = 3};
  const Shape large{.stages = 8, .chunks = 3, .microbatches = 48, .group = 12};
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(replayer.run(k1F1B, small, uniform_durations(small, 1, 1, 1)).makespan_s, 12.0);
    const Durations durations = uniform_durations(large, 3, 3, 3, 0.125);
    const Replay& r = replayer.run(kInterleaved, large, durations);
    EXPECT_THAT(faults(kInterleaved, large, durations, r, operations(kInterleaved, large, durations)),
                IsEmpty());
  }
}

TEST(Replayer, WalksALongerShapeAfterTheShortestOfItsKind) {
  // 1F1B takes 3(m + p - 1) with F = B = W = 1, whatever the replayer has seen before.
  Replayer replayer;
  for (const int microbatches : {1, 2, 4, 8, 64, 3, 65, 1}) {
    const Shape shape{4, 1, microbatches};
    const double makespan_s =
        replayer.run(Algorithm::kOneForwardOneBackward, shape, uniform_durations(shape, 1, 1, 1)).makespan_s;
    EXPECT_DOUBLE_EQ(makespan_s, 3.0 * (microbatches + 3));
  }
}

}  // namespace
}  // namespace sextant::pipeline
