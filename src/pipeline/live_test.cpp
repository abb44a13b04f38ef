#include "pipeline/live.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace sextant::pipeline {
namespace {

using testing::ElementsAre;

constexpr Algorithm k1F1B = Algorithm::kOneForwardOneBackward;
constexpr Algorithm kInterleaved = Algorithm::kInterleaved;

std::vector<int> peaks(Algorithm algorithm, const Shape& shape) {
  std::vector<int> result;
  for (int stage = 0; stage < shape.stages; ++stage)
    result.push_back(peak_live_chunks(algorithm, shape, stage));
  return result;
}

// sail-sg/zero-bubble-pipeline-parallelism issue 8, NVIDIA/Megatron-LM issue 1300.
TEST(LiveMicrobatches, OfOneForwardOneBackwardFallFromTheFirstStageToTheLast) {
  EXPECT_THAT(peaks(k1F1B, {.stages = 8, .microbatches = 64}), ElementsAre(8, 7, 6, 5, 4, 3, 2, 1));
  EXPECT_THAT(peaks(k1F1B, {.stages = 8, .microbatches = 4}), ElementsAre(4, 4, 4, 4, 4, 3, 2, 1));
  EXPECT_THAT(peaks(k1F1B, {.stages = 1, .microbatches = 64}), ElementsAre(1));
  EXPECT_THAT(peaks(k1F1B, {.stages = 4, .microbatches = 2}), ElementsAre(2, 2, 2, 1));
}

// Megatron-LM functional tests (peaks measured on the last stage): 9 chunks alive with N = 4 and V = 3 …
TEST(LiveChunks, OfTheLastInterleavedStageAreAllGroupsButTheLastAndOne) {
  const Shape shape{.stages = 4, .chunks = 3, .microbatches = 16, .group = 4};
  EXPECT_EQ(peak_live_chunks(kInterleaved, shape, 3), 9);
  EXPECT_THAT(live_per_chunk(kInterleaved, shape, 3), ElementsAre(4, 4, 1));
  // … and 11 with N = 5.
  const Shape wider{.stages = 4, .chunks = 3, .microbatches = 15, .group = 5};
  EXPECT_EQ(peak_live_chunks(kInterleaved, wider, 3), 11);
  EXPECT_THAT(live_per_chunk(kInterleaved, wider, 3), ElementsAre(5, 5, 1));
}

TEST(LiveChunks, OfEarlierInterleavedStagesAreTwoMoreEach) {
  const Shape shape{.stages = 4, .chunks = 2, .microbatches = 16};
  EXPECT_THAT(peaks(kInterleaved, shape), ElementsAre(11, 9, 7, 5));
  EXPECT_THAT(live_per_chunk(kInterleaved, shape, 0), ElementsAre(7, 4));
}

TEST(LiveChunks, AreNeverMoreThanExist) {
  EXPECT_THAT(peaks(kInterleaved, {.stages = 4, .chunks = 2, .microbatches = 4}), ElementsAre(8, 8, 7, 5));
  EXPECT_EQ(peak_live_chunks(Algorithm::kGpipe, {.stages = 4, .microbatches = 7}, 2), 7);
}

// NVIDIA-NeMo/Megatron-Bridge memory-tuning notes: more virtual stages do not lower the peak.
TEST(LiveMicrobatches, DoNotFallWithMoreVirtualStagesOnTheFirstStage) {
  // PP = 4: [2·3 + (V-1)·4 + 1] / V micro-batches of V equal chunks: 23/5 and 43/10 of them.
  const auto live = [](int chunks) {
    return peak_live_chunks(kInterleaved, {.stages = 4, .chunks = chunks, .microbatches = 32}, 0);
  };
  EXPECT_EQ(live(5), 23);
  EXPECT_EQ(live(10), 43);
}

TEST(ClosedForms, AgreeWithTheGeneratedOrder) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 40; m += (m < 12 ? 1 : 5)) {
      for (int v = 1; v <= 5; ++v) {
        for (int n = v == 1 ? p : 1; n <= (v == 1 ? p : m); ++n) {
          const Shape shape{.stages = p, .chunks = v, .microbatches = m, .group = n};
          for (const Algorithm algorithm : {k1F1B, kInterleaved, Algorithm::kGpipe}) {
            if (unschedulable(algorithm, shape)) continue;
            for (int stage = 0; stage < p; ++stage) {
              const LivePeak along = live_peak(generate_stage(algorithm, shape, stage), v);
              EXPECT_EQ(peak_live_chunks(algorithm, shape, stage), along.chunk_passes);
              EXPECT_EQ(live_per_chunk(algorithm, shape, stage), along.per_chunk);
              EXPECT_EQ(peak_pending_weight_gradients(algorithm, shape, stage), 0);
            }
          }
        }
      }
    }
  }
}

TEST(LiveBytes, AgreeWithTheGeneratedOrderForUnequalChunks) {
  const std::vector<double> bytes = {5.0, 1.0, 2.0, 9.0};
  for (const int p : {1, 2, 4, 7}) {
    for (int m = p; m <= 60; ++m) {
      for (int n = p; n <= m; ++n) {
        const Shape shape{.stages = p, .chunks = 4, .microbatches = m, .group = n};
        if (unschedulable(kInterleaved, shape)) continue;
        for (int stage = 0; stage < p; ++stage) {
          EXPECT_EQ(peak_live_bytes(kInterleaved, shape, stage, bytes),
                    peak_live_bytes(generate_stage(kInterleaved, shape, stage), bytes));
        }
      }
    }
  }
}

TEST(LiveBytes, MayPeakLaterThanTheCount) {
  // Last stage of 2, V = 2, N = 2: first peak is chunks {2, 1}. After the group's backwards through chunk 1
  // and before those through chunk 0 the stage holds 3 of chunk 0.
  const Shape shape{.stages = 2, .chunks = 2, .microbatches = 8};
  EXPECT_THAT(live_per_chunk(kInterleaved, shape, 1), ElementsAre(2, 1));
  EXPECT_EQ(peak_live_bytes(kInterleaved, shape, 1, std::vector<double>{10.0, 1.0}), 30.0);
  EXPECT_EQ(peak_live_bytes(k1F1B, {.stages = 4, .microbatches = 8}, 1, std::vector<double>{7.0}), 21.0);
}

TEST(PendingWeightGradients, AreThoseBetweenInputAndWeightGradient) {
  constexpr Kind kF = Kind::kForward;
  constexpr Kind kB = Kind::kBackwardInput;
  constexpr Kind kW = Kind::kBackwardWeight;
  const std::vector<Step> order = {{0, 0, kF}, {0, 1, kF}, {0, 0, kB}, {0, 1, kB}, {0, 2, kF},
                                   {0, 0, kW}, {0, 2, kB}, {0, 1, kW}, {0, 2, kW}};
  const LivePeak peak = live_peak(order, 1);
  EXPECT_EQ(peak.chunk_passes, 3);
  EXPECT_EQ(peak.pending_weight_gradients, 2);
  EXPECT_EQ(peak_live_bytes(order, std::vector<double>{4.0}), 12.0);
}

}  // namespace
}  // namespace sextant::pipeline
