#include "batching/step_price.h"

#include <algorithm>

namespace sextant::batching {

std::int64_t price_us(const StepPrice& price, std::int64_t tokens) {
  const std::vector<StepPrice::Point>& points = price.points;
  if (points.empty()) return 0;
  if (tokens <= points.front().tokens) return points.front().us;
  if (points.size() == 1) return points[0].us * tokens / std::max<std::int64_t>(1, points[0].tokens);
  std::size_t right = 1;
  while (right + 1 < points.size() && points[right].tokens < tokens) ++right;
  const StepPrice::Point& a = points[right - 1];
  const StepPrice::Point& b = points[right];
  return a.us + (tokens - a.tokens) * (b.us - a.us) / std::max<std::int64_t>(1, b.tokens - a.tokens);
}

std::int64_t most_tokens(const StepPrice& price, std::int64_t us, std::int64_t limit) {
  if (price.points.empty()) return limit;
  std::int64_t fits = 0, above = limit + 1;
  while (above - fits > 1) {
    const std::int64_t middle = fits + (above - fits) / 2;
    (price_us(price, middle) <= us ? fits : above) = middle;
  }
  return fits;
}

}  // namespace sextant::batching
