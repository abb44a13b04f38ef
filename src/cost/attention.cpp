// Scaled dot-product attention.
//
// *Fused* (FlashAttention, cuDNN): 2·pairs·(d + d_v) FLOPs forward and, with the scores computed again,
// 2·pairs·(3d + 2d_v) backward, 2.5 times as many when d = d_v (Dao et al., FlashAttention-2). `pairs` is
// what the mask leaves, so causal, windowed and context-parallel attention differ by that number only.
// Fractions are of the BF16 peak, whatever the linears' precision.
//
// *Unfused*: batched products over the full rectangle, which reach a fraction of a large product's speed, and
// passes over the scores (2 bytes an element):
//   forward   2 by the products, and scale-mask-softmax read and written (2), dropout read, written and its
//   byte mask
//             (2.5);
//   backward  4 by the four products, dropout (2.5) and softmax, which reads two tensors and writes one (3).
// Where the fused softmax kernel does not apply, PyTorch casts to fp32, scales, masks, normalises and casts
// back, each a pass of its own: 18.5 instead of 2 and of 3 (megatron/model/fused_softmax.py,
// forward_torch_softmax: 2 + 4, 4 + 4, 4 + 4 + 1, 4 + 4 and 4 + 2 bytes; the same gradients going back).
// Fitted on BLOOM, vTrain and SC21 rows, cost.md. A head size that is no multiple of 8 slows both products as
// in gemm.cpp; it is the largest single effect in the BLOOM sweep (head sizes 108 and 150).
//
// A ring of context-parallel ranks works on one block of keys after another, its kernels are smaller and
// their results are merged: slower by a few per cent a rank (torchtitan rows with context parallelism,
// cost.md).
#include <algorithm>
#include <cmath>

#include "cost/peak.h"

namespace sextant::cost {
namespace {

constexpr double kScoreBytes = 2;
constexpr double kTorchSoftmaxPasses = 18.5;

/// One exponential a score, at a sixteenth of the vector units' rate, as matrix FLOPs that take as long: what
/// bounds the forward pass of narrow heads where matrix units have grown faster than special functions (Shah
/// et al., FlashAttention-3, section 3.1: 16 of 256 operations a clock and unit).
double exponential_flops(const AttentionCore& a, double peak_flops, const Machine& machine) {
  const double vector_flops = machine.cluster->accelerator.vector_flops;
  if (a.backward || vector_flops <= 0) return 0;
  return a.batch * a.heads * a.pairs_per_head * 16.0 * peak_flops / vector_flops;
}

double fused_s(const AttentionCore& a, double flops, const Machine& machine) {
  const Efficiency& e = machine.efficiency;
  const MatrixRate rate = matrix_rate(cluster::Precision::kBf16, machine);
  double fraction = e.attention_forward_fraction;
  if (a.backward) fraction *= e.attention_backward_relative;
  if (a.fp8) fraction *= e.attention_fp8_relative;
  if (a.head_dim > a.value_head_dim) fraction *= e.attention_latent_relative;
  // Queries and outputs, keys and values, once; their gradients as well going back.
  const double bytes = 2.0 * a.batch * (a.head_dim + a.value_head_dim) *
                       (a.heads * a.query_tokens + a.kv_heads * a.key_tokens) * (a.backward ? 2.0 : 1.0);
  const double work = std::max(flops, exponential_flops(a, rate.peak_flops, machine));
  return std::max(work / (rate.peak_flops * std::min(fraction, 1.0)),
                  bytes / machine.cluster->accelerator.memory_bandwidth_bytes_per_s);
}

double unfused_s(const AttentionCore& a, double flops, const Machine& machine) {
  const Efficiency& e = machine.efficiency;
  const MatrixRate rate = matrix_rate(cluster::Precision::kBf16, machine);
  const bool aligned = std::fmod(a.head_dim, 8.0) == 0 && std::fmod(a.value_head_dim, 8.0) == 0;
  double compute_s = flops / (rate.reached() * std::min(e.unfused_attention_relative, 1.0));
  if (!aligned) compute_s *= e.misalignment_divisor;

  const double product_passes = a.backward ? 4 : 2;
  const double softmax_alone = !a.fused_softmax ? kTorchSoftmaxPasses : a.backward ? 3 : 2;
  const double softmax_passes = softmax_alone + (a.dropout ? 2.5 : 0);
  const double scores = a.batch * a.heads * a.query_tokens * a.key_tokens;
  const double bandwidth = machine.cluster->accelerator.memory_bandwidth_bytes_per_s;
  const double softmax_slowness =
      std::max(e.element_wise_passes, 1.0) / std::min(e.element_wise_fraction, 1.0);
  const double memory_s =
      kScoreBytes * scores / bandwidth * (product_passes + softmax_passes * softmax_slowness);
  return compute_s + memory_s;
}

}  // namespace

double attention_s(const AttentionCore& attention, const Machine& machine) {
  const double flops = attention_flops(attention);
  if (flops <= 0) return 0;
  const double whole_s =
      attention.fused ? fused_s(attention, flops, machine) : unfused_s(attention, flops, machine);
  return whole_s * (1 + machine.efficiency.context_attention_loss * (attention.context_ranks - 1));
}

}  // namespace sextant::cost
