#include "cluster/precision.h"

#include <gtest/gtest.h>

namespace sextant::cluster {
namespace {

TEST(Precision, EveryNameReadsBack) {
  for (int i = 0; i < kPrecisions; ++i) {
    const auto precision = static_cast<Precision>(i);
    EXPECT_EQ(precision_from_name(name(precision)), precision);
  }
}

TEST(Precision, CaseAndPyTorchNamesAreAccepted) {
  EXPECT_EQ(precision_from_name("BF16"), Precision::kBf16);
  EXPECT_EQ(precision_from_name("bfloat16"), Precision::kBf16);
  EXPECT_EQ(precision_from_name("float32"), Precision::kFp32);
  EXPECT_EQ(precision_from_name("fp4"), std::nullopt) << "MXFP4 or NVFP4: the name does not say";
}

TEST(Precision, OperandBytesFollowTheFormat) {
  EXPECT_EQ(operand_bytes(Precision::kFp32), 4.0);
  EXPECT_EQ(operand_bytes(Precision::kBf16), 2.0);
  EXPECT_EQ(operand_bytes(Precision::kMxfp8), 1.0);
  EXPECT_EQ(operand_bytes(Precision::kNvfp4), 0.5);
  EXPECT_FALSE(is_low_precision(Precision::kFp16));
  EXPECT_TRUE(is_low_precision(Precision::kFp8));
}

TEST(Fp8Recipe, NamesAreTheFrameworks) {
  EXPECT_EQ(name(Fp8Recipe::kNone), "none");
  EXPECT_EQ(name(Fp8Recipe::kBlockwise), "blockwise");
}

}  // namespace
}  // namespace sextant::cluster
