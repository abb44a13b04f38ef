#include "llm/retry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <string>

#include "base/text.h"

namespace sextant::llm {
namespace {

constexpr double kLargestJitter = 0.25;
constexpr double kLongestAnnouncedWait = 60;  // windows of the providers are a minute

/// "6m0s", "1h2m3.5s", "100ms", "12"; empty: something else.
std::optional<double> duration_s(const std::string& text) {
  double total = 0;
  const char* at = text.c_str();
  if (*at == '\0') return std::nullopt;
  while (*at != '\0') {
    char* end = nullptr;
    const double value = std::strtod(at, &end);
    if (end == at || !std::isfinite(value)) return std::nullopt;
    const std::string_view unit(end);
    if (unit.starts_with("ms")) {
      total += value / 1000;
      at = end + 2;
    } else if (unit.starts_with("h") || unit.starts_with("m") || unit.starts_with("s")) {
      total += value * (unit[0] == 'h' ? 3600 : unit[0] == 'm' ? 60 : 1);
      at = end + 1;
    } else {
      return unit.empty() ? std::optional(total + value) : std::nullopt;
    }
  }
  return total;
}

std::optional<double> time_s(const std::string& text, const char* format) {
  std::tm time{};
  if (::strptime(text.c_str(), format, &time) == nullptr) return std::nullopt;
  return static_cast<double>(::timegm(&time));
}

/// -1 and 0 limits on some of Azure's answers mean "not told".
bool is_exhausted(const std::vector<http::Header>& headers, const std::string& remaining,
                  const std::string& limit) {
  const auto left = http::find_header(headers, remaining);
  const auto most = http::find_header(headers, limit);
  return left == "0" && (!most || std::atof(most->c_str()) > 0);
}

}  // namespace

double wait_s(const RetryPolicy& policy, int retry, const Fault& fault, double jitter) {
  if (fault.retry_after_s) return *fault.retry_after_s;
  const bool full = fault.kind == FaultKind::kRateLimited || fault.kind == FaultKind::kOverloaded;
  const double longest = full ? policy.longest_wait_when_full_s : policy.longest_wait_s;
  return std::min(longest, policy.first_wait_s * std::pow(2.0, retry - 1)) * (1 - kLargestJitter * jitter);
}

double announced_wait_s(const std::vector<http::Header>& headers) {
  double wait = 0;
  for (const std::string what : {"requests", "tokens"}) {
    if (!is_exhausted(headers, "x-ratelimit-remaining-" + what, "x-ratelimit-limit-" + what)) continue;
    const auto reset = http::find_header(headers, "x-ratelimit-reset-" + what);
    if (const auto seconds = reset ? duration_s(*reset) : std::nullopt) wait = std::max(wait, *seconds);
  }
  const auto date = http::find_header(headers, "date");
  const auto now_s = date ? time_s(*date, "%a, %d %b %Y %H:%M:%S GMT") : std::nullopt;
  for (const std::string what : {"requests", "tokens", "input-tokens", "output-tokens"}) {
    const std::string prefix = "anthropic-ratelimit-" + what;
    if (!now_s || !is_exhausted(headers, prefix + "-remaining", prefix + "-limit")) continue;
    const auto reset = http::find_header(headers, prefix + "-reset");
    if (const auto until_s = reset ? time_s(*reset, "%Y-%m-%dT%H:%M:%S") : std::nullopt) {
      wait = std::max(wait, *until_s - *now_s);
    }
  }
  return std::clamp(wait, 0.0, kLongestAnnouncedWait);
}

bool CircuitBreaker::admits(double now_s) {
  const std::scoped_lock lock(mutex_);
  if (!closed_until_s_) return true;
  if (now_s < *closed_until_s_) return false;
  closed_until_s_ = now_s + pause_s_;  // one call tries; others wait for its outcome
  return true;
}

void CircuitBreaker::report(bool success, double now_s) {
  const std::scoped_lock lock(mutex_);
  failures_ = success ? 0 : failures_ + 1;
  closed_until_s_ = failures_ >= most_failures_ ? std::optional(now_s + pause_s_) : std::nullopt;
}

}  // namespace sextant::llm
