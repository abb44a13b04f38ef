// Which order belongs to an algorithm, with and without limits on what a stage keeps alive.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "pipeline/controlled_memory.h"
#include "pipeline/live.h"
#include "pipeline/orders.h"
#include "pipeline/schedule.h"

namespace sextant::pipeline {
namespace {

/// What the algorithm itself promises to stay within, in chunk passes.
int own_limit(Algorithm algorithm, const BuildingBlock& block) {
  const int stages = static_cast<int>(block.slots.size());
  if (algorithm == Algorithm::kVMin) return std::ranges::max(block.live_chunks);
  return algorithm == Algorithm::kVHalf ? stages + 2 : 2 * stages;
}

bool from_building_block(Algorithm algorithm, const Shape& shape) {
  if (algorithm == Algorithm::kVHalf || algorithm == Algorithm::kVMin) return true;
  return algorithm == Algorithm::kZeroBubbleV && shape.microbatches < 2 * shape.stages - 1;
}

/// Whether the algorithm has other orders than its own to offer when memory is short.
bool bends_to_limits(Algorithm algorithm) {
  return algorithm == Algorithm::kZeroBubbleH2 || algorithm == Algorithm::kZeroBubbleV ||
         algorithm == Algorithm::kVHalf || algorithm == Algorithm::kVMin;
}

std::vector<int> peaks(std::span<const std::vector<Step>> orders, int chunks) {
  std::vector<int> peaks;
  for (const auto& order : orders) peaks.push_back(live_peak(order, chunks).chunk_passes);
  return peaks;
}

bool within(std::span<const int> peaks, int chunks, std::span<const int> max_live) {
  for (std::size_t stage = 0; stage < max_live.size(); ++stage) {
    if (peaks[stage] > chunks * max_live[stage]) return false;
  }
  return true;
}

std::vector<Step> own_order(Algorithm algorithm, const Shape& shape, int stage) {
  switch (algorithm) {
    case Algorithm::kOneForwardOneBackward:
      return one_forward_one_backward_order(shape, stage);
    case Algorithm::kInterleaved:
      return interleaved_order(shape, stage);
    case Algorithm::kGpipe:
      return gpipe_order(shape);
    case Algorithm::kZeroBubbleH1:
      return zero_bubble_order(shape, zero_bubble_h1_reach(shape, stage));
    case Algorithm::kZeroBubbleH2:
      return zero_bubble_order(shape, zero_bubble_h2_reach(shape, stage, {}));
    case Algorithm::kZeroBubbleV:
      return zero_bubble_v_order(shape, stage);
    case Algorithm::kDualPipeV:
      return dualpipe_v_order(shape, stage);
    case Algorithm::kVHalf:
    case Algorithm::kVMin:
      break;
  }
  SEXTANT_CHECK(false);
  return {};
}

std::vector<std::vector<Step>> own_orders(Algorithm algorithm, const Shape& shape) {
  if (from_building_block(algorithm, shape)) return *controlled_memory_orders(algorithm, shape, {});
  std::vector<std::vector<Step>> orders;
  for (int stage = 0; stage < shape.stages; ++stage) orders.push_back(own_order(algorithm, shape, stage));
  return orders;
}

/// The order within limits, or nothing.
std::optional<std::vector<std::vector<Step>>> bent_orders(Algorithm algorithm, const Shape& shape,
                                                          std::span<const int> max_live) {
  if (algorithm != Algorithm::kZeroBubbleH2) return controlled_memory_orders(algorithm, shape, max_live);
  if (std::ranges::min(max_live) < 1) return std::nullopt;
  std::vector<std::vector<Step>> orders;
  for (int stage = 0; stage < shape.stages; ++stage) {
    orders.push_back(zero_bubble_order(shape, zero_bubble_h2_reach(shape, stage, max_live)));
  }
  return orders;
}

std::optional<std::vector<std::vector<Step>>> orders_within(Algorithm algorithm, const Shape& shape,
                                                            std::span<const int> max_live) {
  auto orders = own_orders(algorithm, shape);
  if (within(peaks(orders, shape.chunks), shape.chunks, max_live)) return orders;
  if (!bends_to_limits(algorithm)) return std::nullopt;
  return bent_orders(algorithm, shape, max_live);
}

std::string joined(const std::vector<int>& chunk_passes, int chunks) {
  std::vector<int> microbatches;
  for (const int passes : chunk_passes) microbatches.push_back((passes + chunks - 1) / chunks);
  return fmt::format("{}", fmt::join(microbatches, ","));
}

/// The least limits that an algorithm can keep, stage by stage.
std::vector<int> least_peaks(Algorithm algorithm, const Shape& shape) {
  if (algorithm == Algorithm::kZeroBubbleH2)
    return std::vector<int>(static_cast<std::size_t>(shape.stages), 1);
  const Algorithm least = bends_to_limits(algorithm) ? Algorithm::kVMin : algorithm;
  return peaks(own_orders(least, shape), shape.chunks);
}

}  // namespace

Pace own_pace(Algorithm algorithm) {
  if (algorithm == Algorithm::kVMin) return Pace::kThird;
  return algorithm == Algorithm::kVHalf ? Pace::kHalf : Pace::kWhole;
}

std::vector<std::vector<Step>> orders_at_pace(Algorithm algorithm, const Shape& shape, Pace pace,
                                              std::span<const int> max_live) {
  const BuildingBlock block = building_block(shape.stages, pace);
  std::vector<int> limits(block.slots.size(), own_limit(algorithm, block));
  for (std::size_t stage = 0; stage < max_live.size(); ++stage) {
    limits[stage] = std::min(limits[stage], shape.chunks * max_live[stage]);
  }
  return squeezed_orders(block, shape.microbatches, limits);
}

std::optional<std::vector<std::vector<Step>>> controlled_memory_orders(Algorithm algorithm,
                                                                       const Shape& shape,
                                                                       std::span<const int> max_live) {
  const auto from = std::ranges::find(kPaces, own_pace(algorithm));
  for (auto pace = std::reverse_iterator(from + 1); pace != kPaces.rend(); ++pace) {
    auto orders = orders_at_pace(algorithm, shape, *pace, max_live);
    if (within(peaks(orders, shape.chunks), shape.chunks, max_live)) return orders;
  }
  return std::nullopt;
}

std::optional<std::string> over_limit(Algorithm algorithm, const Shape& shape,
                                      std::span<const int> max_live) {
  if (max_live.empty() || orders_within(algorithm, shape, max_live)) return std::nullopt;
  const auto least = least_peaks(algorithm, shape);
  const int all = (std::ranges::max(least) + shape.chunks - 1) / shape.chunks;
  return fmt::format(
      "{} with PP={} and M={} cannot keep within {} live micro-batches a stage; the least limit that works "
      "is "
      "{} for every stage ({} stage by stage)",
      name(algorithm), shape.stages, shape.microbatches, fmt::join(max_live, ","), all,
      joined(least, shape.chunks));
}

std::vector<std::vector<Step>> generate(Algorithm algorithm, const Shape& shape,
                                        std::span<const int> max_live) {
  const auto reason = unschedulable(algorithm, shape);
  SEXTANT_CHECK_EQ(reason.value_or(""), "");
  if (max_live.empty()) return own_orders(algorithm, shape);
  auto orders = orders_within(algorithm, shape, max_live);
  SEXTANT_CHECK(orders.has_value());
  return *std::move(orders);
}

std::vector<Step> generate_stage(Algorithm algorithm, const Shape& shape, int stage) {
  const auto reason = unschedulable(algorithm, shape);
  SEXTANT_CHECK_EQ(reason.value_or(""), "");
  SEXTANT_CHECK(stage >= 0 && stage < shape.stages);
  if (!from_building_block(algorithm, shape)) return own_order(algorithm, shape, stage);
  return own_orders(algorithm, shape)[static_cast<std::size_t>(stage)];
}

}  // namespace sextant::pipeline
