#include <gtest/gtest.h>

#include "cost/sample_machine.h"

namespace sextant::cost {
namespace {

class AttentionTime : public testing::Test {
 protected:
  AttentionTime() {
    causal.batch = 1;
    causal.heads = 32;
    causal.kv_heads = 8;
    causal.query_tokens = causal.key_tokens = 8192;
    causal.pairs_per_head = 8192.0 * 8192 / 2;
    causal.head_dim = causal.value_head_dim = 128;
  }
  cluster::Cluster cluster = sample::h100(1);
  Machine ideal{&cluster, sample::ideal()};
  Machine usual{&cluster, sample::usual()};
  AttentionCore causal;
};

// 4·pairs·d FLOPs for 32 heads of a causal 8k sequence: 0.55 TFLOP, at 45 % of 989.5 TFLOP/s 1.2 ms.
TEST_F(AttentionTime, fused_forward_takes_four_flops_a_pair_and_channel) {
  const double flops = 4.0 * 32 * 8192.0 * 8192 / 2 * 128;
  EXPECT_DOUBLE_EQ(attention_flops(causal), flops);
  EXPECT_NEAR(attention_s(causal, usual), flops / (989.5e12 * 0.45), 1e-9);
}

// A head of 64: 256 FLOPs a score, and one exponential at a sixteenth of the vector rate. On an H100 989.5e12
// · 16 / 66.9e12 = 236.7 FLOPs' worth: hidden. With matrix units three times as fast it is what takes
// longest.
TEST_F(AttentionTime, exponentials_bound_narrow_heads_when_matrix_units_outgrow_them) {
  causal.head_dim = causal.value_head_dim = 64;
  const double pairs = 32 * 8192.0 * 8192 / 2;
  EXPECT_NEAR(attention_s(causal, usual), pairs * 256 / (989.5e12 * 0.45), 1e-9);
  auto& peaks = cluster.accelerator.peak_flops;
  peaks[static_cast<std::size_t>(cluster::Precision::kBf16)] *= 3;
  EXPECT_NEAR(attention_s(causal, usual), pairs * 16 / cluster.accelerator.vector_flops / 0.45, 1e-9);
}

TEST_F(AttentionTime, fp8_products_and_latent_heads_have_their_own_fractions) {
  AttentionCore fp8 = causal;
  fp8.fp8 = true;
  EXPECT_NEAR(attention_s(causal, usual) / attention_s(fp8, usual), usual.efficiency.attention_fp8_relative,
              1e-9);
  usual.efficiency.attention_latent_relative = 0.5;
  AttentionCore latent = causal;
  latent.head_dim = 192;
  EXPECT_NEAR(attention_s(latent, usual) / attention_s(causal, usual), 2 * (192 + 128) / 256.0, 1e-9);
}

// Without the fused kernel the scores are passed over 18.5 times instead of twice, at 2 bytes each.
TEST_F(AttentionTime, torch_softmax_passes_over_the_scores_again_and_again) {
  AttentionCore unfused = causal;
  unfused.fused = false;
  AttentionCore torch = unfused;
  torch.fused_softmax = false;
  const double scores = 32 * 8192.0 * 8192;
  const double slowness = 1 / usual.efficiency.element_wise_fraction;
  EXPECT_NEAR(attention_s(torch, usual) - attention_s(unfused, usual),
              2 * scores * 16.5 * slowness / cluster.accelerator.memory_bandwidth_bytes_per_s, 1e-9);
}

TEST_F(AttentionTime, fused_backward_takes_two_and_a_half_times_the_flops) {
  AttentionCore backward = causal;
  backward.backward = true;
  EXPECT_DOUBLE_EQ(attention_flops(backward), 2.5 * attention_flops(causal));
  EXPECT_NEAR(attention_s(backward, usual), 2.5 / 0.85 * attention_s(causal, usual), 1e-9);
}

TEST_F(AttentionTime, a_window_costs_its_pairs) {
  AttentionCore window = causal;
  window.pairs_per_head = 8192.0 * 1024;
  EXPECT_NEAR(attention_s(window, usual) / attention_s(causal, usual), 1024.0 / 4096, 1e-9);
}

TEST_F(AttentionTime, latent_attention_counts_both_head_sizes) {
  AttentionCore latent = causal;
  latent.head_dim = 192;
  latent.value_head_dim = 128;
  EXPECT_DOUBLE_EQ(attention_flops(latent), 2.0 * 32 * 8192.0 * 8192 / 2 * (192 + 128));
  latent.backward = true;
  EXPECT_DOUBLE_EQ(attention_flops(latent), 2.0 * 32 * 8192.0 * 8192 / 2 * (3 * 192 + 2 * 128));
}

TEST_F(AttentionTime, one_query_against_a_long_cache_is_bound_by_reading_it) {
  AttentionCore decode = causal;
  decode.query_tokens = 1;
  decode.pairs_per_head = 8192;
  EXPECT_NEAR(attention_s(decode, ideal), 2.0 * 256 * (32 + 8 * 8192.0) / 3.35e12, 1e-12);
}

TEST_F(AttentionTime, unfused_attention_computes_the_rectangle_and_passes_over_scores) {
  AttentionCore unfused = causal;
  unfused.fused = false;
  const double scores = 32 * 8192.0 * 8192;
  EXPECT_DOUBLE_EQ(attention_flops(unfused), 4.0 * scores * 128) << "no causal saving";
  const double products = 4.0 * scores * 128 / (989.5e12 * 0.67 * 0.43);
  EXPECT_NEAR(attention_s(unfused, usual), products + 2 * scores / 3.35e12 * (2 + 2 / 0.77), 1e-9);
  unfused.dropout = true;
  EXPECT_NEAR(attention_s(unfused, usual), products + 2 * scores / 3.35e12 * (2 + 4.5 / 0.77), 1e-9);
  unfused.backward = true;
  EXPECT_DOUBLE_EQ(attention_flops(unfused), 8.0 * scores * 128);
  EXPECT_NEAR(attention_s(unfused, usual), 2 * products + 2 * scores / 3.35e12 * (4 + 5.5 / 0.77), 1e-9);
  EXPECT_GT(attention_s(unfused, usual), 3 * attention_s(causal, usual));
}

// BigScience BLOOM sweep: heads of 108 or 150 channels run far below their aligned neighbours.
TEST_F(AttentionTime, misaligned_heads_slow_unfused_attention) {
  AttentionCore aligned = causal;
  aligned.fused = false;
  aligned.head_dim = aligned.value_head_dim = 112;
  AttentionCore odd = aligned;
  odd.head_dim = odd.value_head_dim = 108;
  EXPECT_GT(attention_s(odd, usual), 3 * attention_s(aligned, usual));
}

TEST_F(AttentionTime, never_beats_the_peak_or_its_operands) {
  for (const bool fused : {false, true}) {
    for (const bool backward : {false, true}) {
      AttentionCore a = causal;
      a.fused = fused;
      a.backward = backward;
      EXPECT_GE(attention_s(a, ideal), attention_flops(a) / 989.5e12);
      a.batch = 0;
      EXPECT_EQ(attention_s(a, usual), 0);
    }
  }
}

}  // namespace
}  // namespace sextant::cost
