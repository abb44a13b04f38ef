// Zero-bubble schedules with one chunk a stage (Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024).
//
// 1F1B leaves a stage idle at the start (waiting for its first backward) and at the end (waiting for
// gradients). A weight gradient W waits for nothing but its own B, so it can fill such holes. What it costs
// is memory: a micro-batch stays alive until its W.
//
// Both schedules are one rule with two numbers a stage:
//
//   ahead    forwards that run before the first backward;
//   behind   input gradients that run before the first weight gradient. From then on stage r runs F, B and
//            the W of `behind` micro-batches ago, in turn; what is left of W comes at the end.
//
// A stage keeps ahead + 1 micro-batches on their way and `behind` more that only wait for W. ZB-H1 has
// ahead = P-1-r like 1F1B and behind = r, so every stage reaches P, 1F1B's largest stage. ZB-H2 has twice of
// both, 2(P-1)+1 in all: enough to keep every stage busy from its first step to its last. With a limit L a
// stage runs as far ahead as the limit's share of that range allows, ahead = (P-1-r) + (P-1-r)·(L-P)/(P-1),
// and spends the rest of the limit on waiting weight gradients.
//
// Never stuck: a stage needs at least as many forwards ahead as the next one, and that is kept whatever the
// limits are.
#include <algorithm>

#include "pipeline/orders.h"

namespace sextant::pipeline {
namespace {

/// F and B in turn after `ahead` forwards; W `behind` input gradients later.
std::vector<Step> ahead_and_behind(int microbatches, Reach reach) {
  std::vector<Step> order;
  order.reserve(3 * static_cast<std::size_t>(microbatches));
  const int ahead = std::min(reach.ahead, microbatches);
  for (int forward = 0; forward < ahead; ++forward) order.push_back({0, forward, Kind::kForward});
  for (int backward = 0; backward < microbatches; ++backward) {
    const int forward = backward + ahead;
    if (forward < microbatches) order.push_back({0, forward, Kind::kForward});
    order.push_back({0, backward, Kind::kBackwardInput});
    if (backward >= reach.behind) order.push_back({0, backward - reach.behind, Kind::kBackwardWeight});
  }
  for (int weight = std::max(0, microbatches - reach.behind); weight < microbatches; ++weight) {
    order.push_back({0, weight, Kind::kBackwardWeight});
  }
  return order;
}

/// How far ahead stage `stage` runs when it may keep `limit` alive; P-1-r up to twice that.
int ahead_within(int stages, int stage, int limit) {
  const int behind_it = stages - 1 - stage;
  const int extra = std::clamp(limit - stages, 0, stages - 1);
  const int wanted = behind_it + (stages > 1 ? behind_it * extra / (stages - 1) : 0);
  return std::clamp(wanted, 0, std::max(0, limit - 1));
}

}  // namespace

Reach zero_bubble_h1_reach(const Shape& shape, int stage) { return {shape.stages - 1 - stage, stage}; }

Reach zero_bubble_h2_reach(const Shape& shape, int stage, std::span<const int> max_live) {
  const int all = 2 * shape.stages - 1;
  const auto limit_of = [&](int of_stage) {
    return max_live.empty() ? all : std::min(all, max_live[static_cast<std::size_t>(of_stage)]);
  };
  int ahead = ahead_within(shape.stages, 0, limit_of(0));
  for (int next = 1; next <= stage; ++next) {
    ahead = std::min(ahead, ahead_within(shape.stages, next, limit_of(next)));
  }
  return {ahead, std::min(limit_of(stage) - 1 - ahead, 2 * stage)};
}

std::vector<Step> zero_bubble_order(const Shape& shape, Reach reach) {
  return ahead_and_behind(shape.microbatches, reach);
}

}  // namespace sextant::pipeline
