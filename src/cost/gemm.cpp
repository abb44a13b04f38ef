// Matrix products.
//
// Time = computing + moving, added: the operands of one tile are fetched while another computes, but the fits
// behind cost.md found that most operand traffic still shows (0.95 passes over operands and result), and that
// this, not a saturation in k, is what slows products with a small side:
//
//   2·m·n·k / (peak · fraction) · tiles · misaligned  +  bytes / (bandwidth · element_wise_fraction)
//
// *tiles*: libraries compute 256 × 128 tiles of the result (64 × 128 below 256 rows), one a compute unit at a
// time. A ragged edge or a last wave that fills few units does work that nobody asked for; `tile_waste` is
// the share of it that shows, since libraries also have smaller tiles and split k (NVIDIA, Matrix
// Multiplication Background User's Guide, 2.2, 3.1 and 3.2). *misaligned*: rows that do not start at 16-byte
// boundaries keep tensor cores waiting (same guide, 2.2); the sides that can be a row are n and k, and m too
// in a weight gradient, whose operands are stored transposed.
//
// A floor holds whatever was fitted: no product is faster than its FLOPs at the peak, nor than touching its
// operands once at the nominal bandwidth.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "cost/peak.h"

namespace sextant::cost {
namespace {

constexpr double kTileColumns = 128;
constexpr double kTileRows = 256;
constexpr double kSmallTileRows = 64;
constexpr double kAlignedElements = 8;  // 16 bytes of a 16-bit format

bool aligned(double side) {
  const double blocks = side * (1.0 / kAlignedElements);
  return blocks == std::floor(blocks);
}

/// Work done, waste included, over work asked for; at least 1.
double tile_factor(double m, double n, int compute_units, double waste_shown) {
  if (compute_units <= 0) return 1;
  const double units = compute_units;
  const double rows = m >= kTileRows ? kTileRows : kSmallTileRows;
  const double tiles = std::ceil(m / rows) * std::ceil(n / kTileColumns);
  const double done = std::ceil(tiles / units) * units * rows * kTileColumns;
  return 1 + waste_shown * (done / (m * n) - 1);
}

double result_bytes(cluster::Precision precision) { return precision == cluster::Precision::kFp32 ? 4 : 2; }

}  // namespace

MatrixRate matrix_rate(cluster::Precision precision, const Machine& machine) {
  using enum cluster::Precision;
  const cluster::Accelerator& accelerator = machine.cluster->accelerator;
  cluster::Precision used = precision;
  if (accelerator.peak(used) <= 0) {
    if (used == kFp32 && accelerator.vector_flops > 0) return {accelerator.vector_flops, 1.0};
    used = accelerator.peak(kBf16) > 0 ? kBf16 : kFp16;
  }
  const double fraction = machine.efficiency.gemm_fraction[static_cast<std::size_t>(used)];
  SEXTANT_CHECK_GT(accelerator.peak(used), 0.0);
  SEXTANT_CHECK_GT(fraction, 0.0);
  return {accelerator.peak(used), std::min(fraction, 1.0)};
}

double gemm_s(const Gemm& gemm, cluster::Precision precision, const Machine& machine) {
  const double m = gemm.m;
  const double n = gemm.n;
  const double k = gemm.k;
  const double flops = 2.0 * m * n * k;
  if (flops <= 0) return 0;
  const Efficiency& e = machine.efficiency;
  const cluster::Accelerator& accelerator = machine.cluster->accelerator;
  const MatrixRate rate = matrix_rate(precision, machine);

  double compute_s = flops / rate.reached() * tile_factor(m, n, accelerator.compute_units, e.tile_waste);
  if (!aligned(n) || !aligned(k) || (gemm.accumulates_fp32 && !aligned(m)))
    compute_s *= e.misalignment_divisor;

  const double operands = cluster::operand_bytes(precision) * (m * k + k * n);
  const double result = m * n;
  double bytes = e.gemm_operand_passes * (operands + result_bytes(precision) * result);
  if (gemm.accumulates_fp32) bytes += e.weight_gradient_bytes * result;
  const double bandwidth = accelerator.memory_bandwidth_bytes_per_s;
  const double seconds = compute_s + bytes / (bandwidth * std::min(e.element_wise_fraction, 1.0));

  const double least_bytes = operands + result_bytes(precision) * result;
  return gemm.count * std::max({seconds, flops / rate.peak_flops, least_bytes / bandwidth});
}

/// One kernel over all local experts. With t tokens an expert the tiles of a forward or input-gradient
/// product fill as t / (t + half); a weight gradient sums over tokens instead and fills them always. Tokens'
/// traffic shows as in a dense product: narrow experts, whose products have a small side, pay most. Each
/// expert's weights come from memory once a pass, and each expert costs a minimum however few tokens it has.
/// Fitted on Megatron-Bridge, DGXC and Primus rows (cost.md); below about 1,000 tokens an expert the half and
/// the minimum are priors.
double grouped_gemm_s(const GroupedGemm& gemm, cluster::Precision precision, const Machine& machine) {
  const double t = gemm.tokens_per_group;
  const double flops = 2.0 * gemm.groups * t * gemm.n * gemm.k;
  if (flops <= 0) return 0;
  const Efficiency& e = machine.efficiency;
  const MatrixRate rate = matrix_rate(precision, machine);

  double compute_s = flops / (rate.reached() * std::min(e.grouped_relative, 1.0));
  if (!gemm.weight_gradient) compute_s *= 1 + e.grouped_half_tokens / t;
  if (!aligned(gemm.n) || !aligned(gemm.k)) compute_s *= e.misalignment_divisor;

  const double element = cluster::operand_bytes(precision);
  const double weights = gemm.groups * gemm.n * gemm.k;
  const double weight_bytes = (gemm.weight_gradient ? e.grouped_weight_gradient_bytes : element) * weights;
  const double bandwidth = machine.cluster->accelerator.memory_bandwidth_bytes_per_s;
  const double rows = gemm.groups * t;
  const double row_bytes = gemm.weight_gradient ? element * (gemm.n + gemm.k)
                                                : element * gemm.k + result_bytes(precision) * gemm.n;
  const double token_s =
      e.gemm_operand_passes * rows * row_bytes / (bandwidth * std::min(e.element_wise_fraction, 1.0));
  const double seconds = compute_s + token_s + weight_bytes / bandwidth + gemm.groups * e.grouped_kernel_s;

  const double least_bytes =
      rows * row_bytes + (gemm.weight_gradient ? result_bytes(precision) : element) * weights;
  return std::max({seconds, flops / rate.peak_flops, least_bytes / bandwidth});
}

}  // namespace sextant::cost
