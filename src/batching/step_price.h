// What a step costs by its rows: a small table of whole numbers, measured by the engine at start or computed
// by a simulator, and the same on all ranks.
#pragma once

#include <cstdint>
#include <vector>

namespace sextant::batching {

struct StepPrice {
  struct Point {
    std::int64_t tokens = 0;
    std::int64_t us = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };
  std::vector<Point> points = {};  ///< ascending in both; empty: nothing is known

  friend bool operator==(const StepPrice&, const StepPrice&) = default;
};

/// Between two points on the line through them, before the first its price, behind the last on the line
/// through the last two (one point: in proportion). Rounded down. 0 when nothing is known.
std::int64_t price_us(const StepPrice& price, std::int64_t tokens);

/// The most tokens, up to `limit`, whose price is at most `us`; `limit` when nothing is known.
std::int64_t most_tokens(const StepPrice& price, std::int64_t us, std::int64_t limit);

}  // namespace sextant::batching
