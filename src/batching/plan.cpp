#include "batching/plan.h"

namespace sextant::batching {

std::int64_t tokens_of(const BatchPlan& plan) {
  std::int64_t tokens = 0;
  for (const Segment& segment : plan.segments) tokens += segment.tokens;
  return tokens;
}

}  // namespace sextant::batching
