#include "pipeline/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace sextant::pipeline {
namespace {

using testing::HasSubstr;

constexpr Algorithm k1F1B = Algorithm::kOneForwardOneBackward;
constexpr Algorithm kInterleaved = Algorithm::kInterleaved;
constexpr Algorithm kGpipe = Algorithm::kGpipe;

/// "F0.1 BW1.0": kind, chunk, micro-batch; with one chunk "F1 BW0".
std::string text(const std::vector<Step>& order, bool with_chunk = false) {
  std::string result;
  for (const Step& step : order) {
    if (!result.empty()) result += ' ';
    result += name(step.kind);
    if (with_chunk) result += std::to_string(step.chunk) + '.';
    result += std::to_string(step.microbatch);
  }
  return result;
}

bool legal(Algorithm algorithm, const Shape& shape) { return !unschedulable(algorithm, shape).has_value(); }

TEST(Names, EveryAlgorithmIsFoundByItsOwnName) {
  EXPECT_EQ(all_algorithms().size(), 9U);
  for (const Algorithm algorithm : all_algorithms())
    EXPECT_EQ(algorithm_from_name(name(algorithm)), algorithm);
}

TEST(Names, ThoseOfPrimusMegatronTorchtitanAndZeroBubbleAreAliases) {
  EXPECT_EQ(algorithm_from_name("1F1B"), k1F1B);
  EXPECT_EQ(algorithm_from_name("1f1b-interleaved"), kInterleaved);
  EXPECT_EQ(algorithm_from_name("vpp"), kInterleaved);
  EXPECT_EQ(algorithm_from_name("Interleaved1F1B"), kInterleaved);
  EXPECT_EQ(algorithm_from_name("GPipe"), kGpipe);
  EXPECT_EQ(algorithm_from_name("zerobubble"), Algorithm::kZeroBubbleH1);
  EXPECT_EQ(algorithm_from_name("zero_bubble"), Algorithm::kZeroBubbleH1);
  EXPECT_EQ(algorithm_from_name("ZB1P"), Algorithm::kZeroBubbleH1);
  EXPECT_EQ(algorithm_from_name("zb2p"), Algorithm::kZeroBubbleH2);
  EXPECT_EQ(algorithm_from_name("zbv-formatted"), Algorithm::kZeroBubbleV);
  EXPECT_EQ(algorithm_from_name("zbv-greedy-half"), Algorithm::kVHalf);
  EXPECT_EQ(algorithm_from_name("zbv-greedy-min"), Algorithm::kVMin);
  EXPECT_EQ(algorithm_from_name("DualPipeV"), Algorithm::kDualPipeV);
  EXPECT_EQ(algorithm_from_name("auto"), std::nullopt);
  EXPECT_EQ(algorithm_from_name(""), std::nullopt);
}

TEST(Algorithms, VShapedOnesNeedTwoChunksInterleavedTwoOrMoreOthersOne) {
  EXPECT_EQ(required_chunks(k1F1B), 1);
  EXPECT_EQ(required_chunks(kGpipe), 1);
  EXPECT_EQ(required_chunks(Algorithm::kZeroBubbleH2), 1);
  EXPECT_EQ(required_chunks(kInterleaved), 0);
  EXPECT_EQ(required_chunks(Algorithm::kVMin), 2);
  EXPECT_EQ(required_chunks(Algorithm::kDualPipeV), 2);
}

TEST(Rules, OneForwardOneBackwardWithFewerMicrobatchesThanStagesIsLegal) {
  EXPECT_TRUE(legal(k1F1B, {.stages = 4, .microbatches = 2}));
  EXPECT_TRUE(legal(k1F1B, {.stages = 4, .microbatches = 1}));
  EXPECT_TRUE(legal(kGpipe, {.stages = 8, .microbatches = 1}));
  EXPECT_FALSE(legal(k1F1B, {.stages = 4, .microbatches = 0}));
  EXPECT_FALSE(legal(k1F1B, {.stages = 4, .chunks = 2, .microbatches = 8}));
}

// NVIDIA-NeMo/Speech issue 14288 and verl-project/verl PR 1617, with Megatron-LM's checks.
TEST(Rules, AnInterleavedGroupLiesBetweenStagesAndMicrobatchesAndLeavesNoSmallRest) {
  EXPECT_FALSE(legal(kInterleaved, {.stages = 6, .chunks = 2, .microbatches = 3}));
  EXPECT_FALSE(legal(kInterleaved, {.stages = 4, .chunks = 2, .microbatches = 10, .group = 4}));
  EXPECT_TRUE(legal(kInterleaved, {.stages = 4, .chunks = 2, .microbatches = 10, .group = 5}));
  EXPECT_TRUE(legal(kInterleaved, {.stages = 4, .chunks = 2, .microbatches = 10, .group = 6}));
  EXPECT_FALSE(legal(kInterleaved, {.stages = 4, .chunks = 2, .microbatches = 10, .group = 3}));
  EXPECT_FALSE(legal(kInterleaved, {.stages = 4, .chunks = 2, .microbatches = 10, .group = 12}));
  EXPECT_FALSE(legal(kInterleaved, {.stages = 4, .chunks = 1, .microbatches = 8}));
}

TEST(Rules, TheReasonNamesStagesGroupAndMicrobatches) {
  const auto reason = unschedulable(kInterleaved, {.stages = 6, .chunks = 2, .microbatches = 3});
  ASSERT_TRUE(reason.has_value());
  EXPECT_THAT(*reason, testing::AllOf(HasSubstr("PP=6"), HasSubstr("N=6"), HasSubstr("M=3")));
  const auto rest = unschedulable(kInterleaved, {.stages = 4, .chunks = 2, .microbatches = 10, .group = 4});
  EXPECT_THAT(rest.value_or(""), testing::AllOf(HasSubstr("PP=4"), HasSubstr("N=4"), HasSubstr("M=10"),
                                                HasSubstr("remainder 2")));
}

TEST(Rules, AnAbsurdlyLargeShapeIsRefusedRatherThanOverflowing) {
  EXPECT_FALSE(legal(k1F1B, {.stages = 100'000, .microbatches = 100'000}));
  EXPECT_FALSE(legal(kInterleaved, {.stages = 100'000, .chunks = 100'000, .microbatches = 100'000}));
  EXPECT_FALSE(legal(Algorithm::kVMin, {.stages = 257, .chunks = 2, .microbatches = 1}));
}

TEST(Orders, OneForwardOneBackwardWarmsUpThenAlternates) {
  const auto orders = generate(k1F1B, {.stages = 3, .microbatches = 4});
  EXPECT_EQ(text(orders[0]), "F0 F1 F2 BW0 F3 BW1 BW2 BW3");
  EXPECT_EQ(text(orders[1]), "F0 F1 BW0 F2 BW1 F3 BW2 BW3");
  EXPECT_EQ(text(orders[2]), "F0 BW0 F1 BW1 F2 BW2 F3 BW3");
}

// AMD-AGI/Primus PR 1032: the warm-up must not run past the last micro-batch.
TEST(Orders, OneForwardOneBackwardWithFewMicrobatchesNamesNoOthers) {
  const auto orders = generate(k1F1B, {.stages = 4, .microbatches = 2});
  EXPECT_EQ(text(orders[0]), "F0 F1 BW0 BW1");
  EXPECT_EQ(text(orders[3]), "F0 BW0 F1 BW1");
}

TEST(Orders, GpipeRunsAllForwardsFirst) {
  EXPECT_EQ(text(generate_stage(kGpipe, {.stages = 2, .microbatches = 3}, 1)), "F0 F1 F2 BW0 BW1 BW2");
}

// Megatron-LM: rank 0 of 2 runs 2(2-1-0) + (2-1)·2 = 4 passes ahead, rank 1 runs 2.
TEST(Orders, InterleavedFollowsMegatronsTable) {
  const auto orders = generate(kInterleaved, {.stages = 2, .chunks = 2, .microbatches = 4});
  EXPECT_EQ(text(orders[0], true),
            "F0.0 F0.1 F1.0 F1.1 F0.2 BW1.0 F0.3 BW1.1 F1.2 BW0.0 F1.3 BW0.1 BW1.2 BW1.3 BW0.2 BW0.3");
  EXPECT_EQ(text(orders[1], true),
            "F0.0 F0.1 F1.0 BW1.0 F1.1 BW1.1 F0.2 BW0.0 F0.3 BW0.1 F1.2 BW1.2 F1.3 BW1.3 BW0.2 BW0.3");
}

TEST(Orders, AnInterleavedLastGroupMayBeShorter) {
  const auto order =
      generate_stage(kInterleaved, {.stages = 2, .chunks = 2, .microbatches = 5, .group = 3}, 1);
  // Warm-up 0 + (2-1)·3, groups {0, 1, 2} and {3, 4}.
  EXPECT_EQ(text(order, true),
            "F0.0 F0.1 F0.2 F1.0 BW1.0 F1.1 BW1.1 F1.2 BW1.2 F0.3 BW0.0 F0.4 BW0.1 F1.3 BW0.2 F1.4 BW1.3 "
            "BW1.4 BW0.3 BW0.4");
}

TEST(Places, InterleavedChunksFollowEachOtherAroundTheStages) {
  const Shape shape{.stages = 4, .chunks = 2, .microbatches = 4};
  EXPECT_EQ(virtual_stage(kInterleaved, shape, {1, 1}), 5);
  EXPECT_EQ(place_of(kInterleaved, shape, 5), (Place{1, 1}));
}

TEST(Places, TheSecondChunkOfAVRunsBack) {
  const Shape shape{.stages = 4, .chunks = 2, .microbatches = 8};
  EXPECT_EQ(virtual_stage(Algorithm::kZeroBubbleV, shape, {3, 0}), 3);
  EXPECT_EQ(virtual_stage(Algorithm::kZeroBubbleV, shape, {3, 1}), 4);
  EXPECT_EQ(virtual_stage(Algorithm::kZeroBubbleV, shape, {0, 1}), 7);
  for (int index = 0; index < 8; ++index) {
    EXPECT_EQ(virtual_stage(Algorithm::kZeroBubbleV, shape, place_of(Algorithm::kZeroBubbleV, shape, index)),
              index);
  }
}

}  // namespace
}  // namespace sextant::pipeline
