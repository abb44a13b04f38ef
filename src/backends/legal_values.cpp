// The legal values that a fix lists.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "backends/rule_entry.h"

namespace sextant::backends {

std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t limit) {
  if (number <= 0) return {1};
  std::vector<std::int64_t> low;
  std::vector<std::int64_t> high;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    low.push_back(d);
    if (d != number / d) high.push_back(number / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  std::erase_if(low, [limit](std::int64_t d) { return d > limit; });
  return low;
}

std::string set_text(std::span<const std::int64_t> values) {
  return fmt::format("{{{}}}", fmt::join(values, ", "));
}

std::string choose(std::string_view knob, std::span<const std::int64_t> values, std::int64_t current) {
  const auto above = std::upper_bound(values.begin(), values.end(), current);
  std::string nearest;
  if (above != values.begin()) nearest = fmt::format("{}", *(above - 1));
  if (above != values.end()) nearest += fmt::format("{}{}", nearest.empty() ? "" : " or ", *above);
  if (values.size() <= 1) return fmt::format("set {} to {}", knob, nearest.empty() ? "1" : nearest);
  return fmt::format("set {} to one of {} (nearest to {}: {})", knob, set_text(values), current, nearest);
}

std::string nearest_multiples(std::string_view knob, std::int64_t step, std::int64_t current) {
  const std::int64_t below = current / step * step;
  if (below < step) return fmt::format("set {} to {}", knob, step);
  if (below == current) return fmt::format("set {} to {}", knob, current);
  return fmt::format("set {} to {} or {}", knob, below, below + step);
}

}  // namespace sextant::backends
