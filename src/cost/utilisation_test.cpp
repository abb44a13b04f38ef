#include "cost/utilisation.h"

#include <gtest/gtest.h>

namespace sextant::cost {
namespace {

using cluster::Precision;

// NVIDIA/Megatron-LM issue 1565 and the reports it gathers: utilisation is against the dense peak.
TEST(Utilisation, is_against_the_dense_peak) {
  const auto mfu = [](const char* name, double tflops) {
    return model_flops_utilisation(tflops * 1e12, Precision::kBf16,
                                   cluster::cluster_from_name(name).accelerator);
  };
  EXPECT_NEAR(mfu("h200", 420).value(), 0.424, 0.0005) << "21.2 % is the sparse peak's answer";
  EXPECT_NEAR(mfu("a100", 156).value(), 0.500, 0.0005);
  EXPECT_NEAR(mfu("h100", 202.78).value(), 0.2050, 0.0002);
  EXPECT_NEAR(mfu("b200", 314.71).value(), 0.1399, 0.0001);
}

TEST(Utilisation, is_absent_for_an_unknown_device) {
  cluster::Accelerator unknown;
  unknown.name = "FooGPU";
  EXPECT_FALSE(model_flops_utilisation(100e12, Precision::kBf16, unknown).has_value());
}

}  // namespace
}  // namespace sextant::cost
