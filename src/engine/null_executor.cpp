#include "engine/executor.h"

namespace sextant::engine {

batching::StepResult NullExecutor::run(const batching::BatchPlan& plan) {
  batching::StepResult result{.tick = plan.tick, .outcomes = {}, .duration_us = 0};
  for (const batching::Segment& segment : plan.segments) {
    if (!segment.samples) continue;
    const std::int64_t position = segment.first_position + segment.tokens;
    result.outcomes.push_back(
        {.id = segment.id, .token = static_cast<batching::TokenId>((segment.id + position) % vocabulary_)});
  }
  return result;
}

}  // namespace sextant::engine
