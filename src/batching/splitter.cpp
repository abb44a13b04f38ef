#include "batching/splitter.h"

#include <algorithm>

#include "base/check.h"

namespace sextant::batching {
namespace {

std::int64_t tokens_in(std::span<const Segment> segments) {
  std::int64_t tokens = 0;
  for (const Segment& segment : segments) tokens += segment.tokens;
  return tokens;
}

Cut at_token(std::span<const Segment> segments, std::int64_t tokens) {
  Cut cut{.segment = 0, .tokens = tokens};
  std::int64_t left = tokens;
  for (const Segment& segment : segments) {
    if (left < segment.tokens) break;
    left -= segment.tokens;
    ++cut.segment;
  }
  return cut;
}

/// The boundary nearest to half of the tokens, the later of two; none with fewer than two segments.
Cut at_boundary(std::span<const Segment> segments, std::int64_t total) {
  Cut best;
  std::int64_t best_distance = total + 1;
  std::int64_t left = 0;
  for (std::size_t i = 0; i + 1 < segments.size(); ++i) {
    left += segments[i].tokens;
    const std::int64_t distance = std::abs(left - total / 2);
    if (distance > best_distance) break;
    best = {.segment = static_cast<std::int64_t>(i) + 1, .tokens = left};
    best_distance = distance;
  }
  return best;
}

Cut cut_decode(std::span<const Segment> segments) {
  const std::size_t half = segments.size() / 2;
  return {.segment = static_cast<std::int64_t>(half), .tokens = tokens_in(segments.first(half))};
}

}  // namespace

Cut find_split(std::span<const Segment> segments, StepKind kind, const OverlapSettings& settings) {
  if (kind == StepKind::kDecode) return cut_decode(segments);
  const std::int64_t total = tokens_in(segments);
  if (settings.policy == SplitPolicy::kTokenMidpoint) return at_token(segments, total / 2);
  const Cut boundary = at_boundary(segments, total);
  if (settings.policy == SplitPolicy::kRequestBoundary) return boundary;
  const std::int64_t smaller = std::min(boundary.tokens, total - boundary.tokens);
  const bool even = smaller * 1000 >= settings.least_half_permille * total && boundary.tokens > 0;
  return even ? boundary : at_token(segments, total / 2);
}

void apply_split(BatchPlan& plan, const Cut& cut) {
  const auto index = static_cast<std::size_t>(cut.segment);
  SEXTANT_CHECK_GT(cut.tokens, 0);
  SEXTANT_CHECK_GT(plan.segments.size(), index);
  const std::int64_t before = tokens_in(std::span(plan.segments).first(index));
  const std::int64_t inside = cut.tokens - before;
  plan.split.segments = cut.segment;
  if (inside == 0) return;
  Segment& first = plan.segments[index];
  Segment second = first;
  first.tokens = inside;
  first.samples = false;
  second.first_position += inside;
  second.tokens -= inside;
  const auto place = static_cast<std::ptrdiff_t>(index) + 1;
  plan.segments.insert(plan.segments.begin() + place, second);
  plan.block_tables.insert(plan.block_tables.begin() + place, plan.block_tables[index]);
  if (!plan.state_slots.empty()) {
    plan.state_slots.insert(plan.state_slots.begin() + place, plan.state_slots[index]);
  }
  ++plan.split.segments;
}

}  // namespace sextant::batching
