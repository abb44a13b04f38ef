#include "pipeline/tailored.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "pipeline/live.h"
#include "pipeline/orders.h"

namespace sextant::pipeline {
namespace {

using Orders = std::vector<std::vector<Step>>;

bool within(const Orders& orders, const Shape& shape, std::span<const int> max_live) {
  for (std::size_t stage = 0; stage < max_live.size(); ++stage) {
    const int peak = live_peak(orders[stage], shape.chunks).chunk_passes;
    if (peak > shape.chunks * max_live[stage]) return false;
  }
  return true;
}

/// 1F1B with the backward split, W right behind B.
Orders weights_at_once(const Shape& shape) {
  Orders orders;
  for (int stage = 0; stage < shape.stages; ++stage) {
    orders.push_back(zero_bubble_order(shape, {.ahead = shape.stages - 1 - stage, .behind = 0}));
  }
  return orders;
}

/// Further orders of the algorithm, beside its own; some may be over the limit.
std::vector<Orders> alternatives(Algorithm algorithm, const Shape& shape, std::span<const int> max_live) {
  std::vector<Orders> orders;
  switch (algorithm) {
    case Algorithm::kZeroBubbleH2:
      orders.push_back(generate(Algorithm::kZeroBubbleH1, shape));
      [[fallthrough]];
    case Algorithm::kZeroBubbleH1:
      orders.push_back(weights_at_once(shape));
      break;
    case Algorithm::kZeroBubbleV:
    case Algorithm::kVHalf:
      for (const Pace pace : kPaces) {
        if (pace <= own_pace(algorithm)) orders.push_back(orders_at_pace(algorithm, shape, pace, max_live));
      }
      break;
    default:
      break;
  }
  return orders;
}

}  // namespace

Orders tailored_orders(Algorithm algorithm, const Shape& shape, const Durations& durations,
                       std::span<const int> max_live) {
  Orders best = generate(algorithm, shape, max_live);
  auto others = alternatives(algorithm, shape, max_live);
  std::erase_if(others, [&](const Orders& orders) { return !within(orders, shape, max_live); });
  if (others.empty()) return best;
  Replayer replayer;
  double best_s = replayer.run(algorithm, shape, durations, best).makespan_s;
  for (Orders& orders : others) {
    const double makespan_s = replayer.run(algorithm, shape, durations, orders).makespan_s;
    if (makespan_s >= best_s) continue;
    best_s = makespan_s;
    best = std::move(orders);
  }
  return best;
}

}  // namespace sextant::pipeline
