#include <gtest/gtest.h>

#include "cost/peak.h"
#include "cost/sample_machine.h"

namespace sextant::cost {
namespace {

using cluster::Precision;

class GemmTime : public testing::Test {
 protected:
  cluster::Cluster cluster = sample::h100(1);
  Machine ideal{&cluster, sample::ideal()};
  Machine usual{&cluster, sample::usual()};
};

TEST_F(GemmTime, an_ideal_large_product_takes_its_flops_at_the_peak) {
  const double flops = 2.0 * 8192 * 8192 * 8192;
  EXPECT_NEAR(gemm_s({8192, 8192, 8192}, Precision::kBf16, ideal), flops / 989.5e12, 1e-9);
  EXPECT_NEAR(gemm_s({8192, 8192, 8192}, Precision::kFp8, ideal), flops / 1979e12, 1e-9);
}

// One row: 2·4096·4096 FLOPs are nothing, 33.6 MB of weights at 3.35 TB/s are 10 us.
TEST_F(GemmTime, an_ideal_single_row_takes_its_weights_at_the_bandwidth) {
  EXPECT_NEAR(gemm_s({1, 4096, 4096}, Precision::kBf16, ideal), (4096.0 * 4096 * 2 + 8192 * 2) / 3.35e12,
              1e-9);
}

TEST_F(GemmTime, operand_traffic_adds_to_computing) {
  // By hand: 0.95 · 2 · (mk + kn + mn) bytes at 0.77 of 3.35 TB/s, beside 2mnk at 0.67 of the peak.
  usual.efficiency.tile_waste = 0;
  const double m = 4096, n = 12288, k = 4096;
  const double compute = 2 * m * n * k / (989.5e12 * 0.67);
  const double memory = 0.95 * 2 * (m * k + k * n + m * n) / (3.35e12 * 0.77);
  EXPECT_NEAR(gemm_s({m, n, k}, Precision::kBf16, usual), compute + memory, 1e-12);
  const double accumulation = 5.6 * m * n / (3.35e12 * 0.77);
  EXPECT_NEAR(gemm_s({m, n, k, 1, true}, Precision::kBf16, usual), compute + memory + accumulation, 1e-12);
}

// NVIDIA Matrix Multiplication Background User's Guide: 16-byte rows. BLOOM's head size 108 is the public
// case.
TEST_F(GemmTime, a_row_that_is_no_multiple_of_eight_costs_the_misalignment_divisor) {
  usual.efficiency.gemm_operand_passes = 0;
  usual.efficiency.tile_waste = 0;
  const auto per_flop = [&](Gemm gemm) {
    return gemm_s(gemm, Precision::kBf16, usual) / (gemm.m * gemm.n * gemm.k);
  };
  const double aligned = per_flop({4096, 4096, 4096});
  EXPECT_NEAR(per_flop({4096, 4100, 4096}) / aligned, 8.7, 1e-6);
  EXPECT_NEAR(per_flop({4096, 4096, 4100}) / aligned, 8.7, 1e-6);
  EXPECT_NEAR(per_flop({4100, 4096, 4096}) / aligned, 1.0, 1e-6) << "rows of tokens may be any number";
  usual.efficiency.weight_gradient_bytes = 0;
  EXPECT_NEAR(per_flop({4100, 4096, 4096, 1, true}) / aligned, 8.7, 1e-6) << "but not of a weight gradient";
}

// 108 units, 256 × 128 tiles (the guide's A100 example): 2,304 × 1,536 is 9 × 12 = 108 tiles, one full wave;
// one row of tiles more needs two waves for 120 tiles, 216 / 120 of the work.
TEST_F(GemmTime, a_last_wave_that_fills_few_units_shows_in_part) {
  cluster.accelerator.compute_units = 108;
  ideal.efficiency.tile_waste = 1;
  const double full = gemm_s({2304, 1536, 4096}, Precision::kBf16, ideal);
  const double spilled = gemm_s({2560, 1536, 4096}, Precision::kBf16, ideal);
  EXPECT_NEAR(full, 2.0 * 2304 * 1536 * 4096 / 989.5e12, 1e-9);
  EXPECT_NEAR(spilled / full, 2.0, 1e-9);
  ideal.efficiency.tile_waste = 0.25;
  const double mild = gemm_s({2560, 1536, 4096}, Precision::kBf16, ideal);
  EXPECT_NEAR(mild, 2.0 * 2560 * 1536 * 4096 / 989.5e12 * (1 + 0.25 * (216.0 / 120 - 1)), 1e-9);
}

TEST_F(GemmTime, never_beats_the_roofline_and_grows_with_every_side) {
  for (Machine* machine : {&ideal, &usual}) {
    for (const auto precision : {Precision::kBf16, Precision::kFp8}) {
      double before = 0;
      for (double m = 8; m <= 20000; m += 264) {
        const double seconds = gemm_s({m, 2048, 4096}, precision, *machine);
        EXPECT_GE(seconds, 2 * m * 2048 * 4096 / cluster.accelerator.peak(precision) * 0.999999);
        EXPECT_GE(seconds, cluster::operand_bytes(precision) * (m + 2048) * 4096 / 3.35e12 * 0.999999);
        EXPECT_GE(seconds, before) << "m " << m;
        before = seconds;
      }
    }
  }
}

TEST_F(GemmTime, an_empty_product_takes_no_time_and_count_multiplies) {
  EXPECT_EQ(gemm_s({0, 4096, 4096}, Precision::kBf16, usual), 0);
  EXPECT_DOUBLE_EQ(gemm_s({512, 512, 512, 3}, Precision::kBf16, usual),
                   3 * gemm_s({512, 512, 512}, Precision::kBf16, usual));
}

TEST_F(GemmTime, a_precision_without_a_peak_runs_as_bf16) {
  EXPECT_EQ(matrix_rate(Precision::kNvfp4, ideal).peak_flops, 989.5e12);
  cluster.accelerator.peak_flops[static_cast<std::size_t>(Precision::kFp32)] = 0;
  EXPECT_EQ(matrix_rate(Precision::kFp32, ideal).peak_flops, 66.9e12) << "the vector units";
}

TEST_F(GemmTime, grouped_products_follow_their_formula) {
  // 8 experts of 1,000 tokens, 4096 → 14336: computing at 0.67 · 0.89 · 1000/1067, 0.95 passes over 2 bytes
  // of 8,000 · (4096 + 14336) token features at the element-wise rate, weights once, 3.2 us each.
  const GroupedGemm forward{8, 1000, 14336, 4096, false};
  const double flops = 2.0 * 8 * 1000 * 14336 * 4096;
  const double weights = 8.0 * 14336 * 4096;
  const double computing = flops / (989.5e12 * 0.67 * 0.89) * 1067 / 1000;
  const double tokens_s =
      0.95 * 2 * 8000 * (4096 + 14336) / (3.35e12 * usual.efficiency.element_wise_fraction);
  EXPECT_NEAR(grouped_gemm_s(forward, Precision::kBf16, usual),
              computing + tokens_s + 2 * weights / 3.35e12 + 8 * 3.2e-6, 1e-9);
  GroupedGemm gradient = forward;
  gradient.weight_gradient = true;
  EXPECT_NEAR(grouped_gemm_s(gradient, Precision::kBf16, usual),
              flops / (989.5e12 * 0.67 * 0.89) + tokens_s + 4.8 * weights / 3.35e12 + 8 * 3.2e-6, 1e-9);
}

TEST_F(GemmTime, many_small_experts_are_slower_than_few_large_ones) {
  const double few = grouped_gemm_s({8, 4096, 1536, 4096}, Precision::kBf16, usual);
  const double many = grouped_gemm_s({128, 256, 1536, 4096}, Precision::kBf16, usual);
  EXPECT_GT(many, 1.2 * few) << "the same FLOPs";
  EXPECT_EQ(grouped_gemm_s({8, 0, 1536, 4096}, Precision::kBf16, usual), 0);
}

TEST_F(GemmTime, grouped_products_never_beat_the_roofline) {
  for (const double tokens : {1.0, 16.0, 500.0, 8192.0}) {
    for (const bool gradient : {false, true}) {
      const GroupedGemm gemm{16, tokens, 2048, 7168, gradient};
      const double seconds = grouped_gemm_s(gemm, Precision::kBf16, ideal);
      EXPECT_GE(seconds, 2 * 16 * tokens * 2048 * 7168 / 989.5e12);
      EXPECT_GE(seconds, 2.0 * 16 * 2048 * 7168 / 3.35e12);
    }
  }
}

}  // namespace
}  // namespace sextant::cost
