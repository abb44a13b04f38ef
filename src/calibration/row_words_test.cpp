#include "calibration/row_words.h"

#include <gtest/gtest.h>

namespace sextant::calibration {
namespace {

using cluster::Fp8Recipe;
using cluster::Precision;

TEST(PrecisionWords, ReadWhatPublishersPrint) {
  EXPECT_EQ(precision_words("BF16")->precision, Precision::kBf16);
  EXPECT_EQ(precision_words("BF16 compute, FP32 parameters")->precision, Precision::kBf16);
  EXPECT_EQ(precision_words("FP16")->precision, Precision::kFp16);
  EXPECT_EQ(precision_words("FP8-MX")->precision, Precision::kMxfp8);
  EXPECT_EQ(precision_words("NVFP4 (layers 0-29) + BF16")->precision, Precision::kNvfp4);
  EXPECT_EQ(precision_words("FP8-CS")->recipe, Fp8Recipe::kTensorwise);
  EXPECT_EQ(precision_words("FP8 current scaling")->recipe, Fp8Recipe::kTensorwise);
  EXPECT_EQ(precision_words("FP8 delayed (TransformerEngine)")->recipe, Fp8Recipe::kDelayed);
  EXPECT_EQ(precision_words("FP8-subchannel")->recipe, Fp8Recipe::kBlockwise);
  EXPECT_FALSE(precision_words("FP8 (float8 linear)")->recipe_said);
  EXPECT_FALSE(precision_words("INT8").has_value());
}

TEST(RecomputeWords, ReadWhatPublishersPrint) {
  using enum parallel::RecomputeGranularity;
  EXPECT_EQ(recompute_words("none")->recompute.granularity, kNone);
  EXPECT_EQ(recompute_words("")->recompute.granularity, kNone);
  EXPECT_EQ(recompute_words("full:uniform")->recompute.layers, 1);
  const auto block = recompute_words("full:block:14");
  EXPECT_EQ(block->recompute.method, parallel::RecomputeMethod::kBlock);
  EXPECT_EQ(block->recompute.layers, 14);
  EXPECT_EQ(recompute_words("full (gradient checkpointing)")->recompute.granularity, kFull);
  EXPECT_EQ(recompute_words("selective:rmsnorm+mla_up_proj")->recompute.modules,
            parallel::kLayerNorm | parallel::kMlaUpProjection);
  EXPECT_EQ(recompute_words("selective:layernorm moe_act")->recompute.modules,
            parallel::kLayerNorm | parallel::kMoeActivation);
  EXPECT_TRUE(recompute_words("selective")->selective_unspecified);
  EXPECT_TRUE(recompute_words("selective:per-op")->selective_unspecified);
  EXPECT_FALSE(recompute_words("selective:attention_thing").has_value());
  EXPECT_FALSE(recompute_words("some of it").has_value());
}

TEST(ScheduleWords, ReadWhatPublishersPrint) {
  using enum pipeline::Algorithm;
  EXPECT_EQ(schedule_words("1F1B"), kOneForwardOneBackward);
  EXPECT_EQ(schedule_words("interleaved 1F1B"), kInterleaved);
  EXPECT_EQ(schedule_words("interleaved-1F1B"), kInterleaved);
  EXPECT_EQ(schedule_words("ZB (zbb)"), kZeroBubbleH1);
  EXPECT_EQ(schedule_words("ZBV-formatted"), kZeroBubbleV);
  EXPECT_EQ(schedule_words("V-Half"), kVHalf);
  EXPECT_FALSE(schedule_words("by hand").has_value());
}

TEST(NumberAfter, FindsWholeLabels) {
  EXPECT_EQ(number_after("local_bs=8; GA=16; x", "GA="), 16);
  EXPECT_EQ(number_after("MEGA=3", "GA="), std::nullopt);
  EXPECT_EQ(number_after("zero1=-1 fsdp=False", "zero1="), -1);
}

}  // namespace
}  // namespace sextant::calibration
