#include "llm/budget.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/units.h"

namespace sextant::llm {

Budget::Budget(BudgetLimits limits, Amount spent) : limits_(limits), spent_(spent) {
  if (limits.tokens && *limits.tokens < 0) throw base::UserError("the budget of tokens must be 0 or more");
  if (limits.usd && (!std::isfinite(*limits.usd) || *limits.usd < 0)) {
    throw base::UserError("the budget of money must be a number of US dollars, 0 or more");
  }
}

std::optional<std::string> Budget::reserve(const Amount& most) {
  const std::scoped_lock lock(mutex_);
  if (limits_.tokens && spent_.tokens + reserved_.tokens + most.tokens > *limits_.tokens) {
    const std::int64_t left = std::max<std::int64_t>(0, *limits_.tokens - spent_.tokens - reserved_.tokens);
    return fmt::format("the call may use {} tokens, {} of {} are left", base::format_count(most.tokens),
                       base::format_count(left), base::format_count(*limits_.tokens));
  }
  if (limits_.usd && spent_.usd + reserved_.usd + most.usd > *limits_.usd) {
    return fmt::format("the call may cost ${:.4f}, ${:.4f} of ${:.2f} are left", most.usd,
                       std::max(0.0, *limits_.usd - spent_.usd - reserved_.usd), *limits_.usd);
  }
  reserved_.tokens += most.tokens;
  reserved_.usd += most.usd;
  return std::nullopt;
}

void Budget::settle(const Amount& reserved, const Amount& real) {
  const std::scoped_lock lock(mutex_);
  reserved_.tokens -= reserved.tokens;
  reserved_.usd = reserved_.tokens == 0 ? 0 : reserved_.usd - reserved.usd;  // no rounding is left behind
  spent_.tokens += real.tokens;
  spent_.usd += real.usd;
}

Amount Budget::spent() const {
  const std::scoped_lock lock(mutex_);
  return spent_;
}

}  // namespace sextant::llm
