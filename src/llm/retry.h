// When to try again, and when to leave a provider alone.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "http/message.h"
#include "llm/fault.h"

namespace sextant::llm {

/// The official client libraries wait half a second, doubling up to eight seconds, and give up after two
/// retries; a run of hours is worth more patience, above all where the provider is full.
struct RetryPolicy {
  int most_retries = 6;
  double first_wait_s = 0.5;
  double longest_wait_s = 8;
  double longest_wait_when_full_s = 60;  ///< after 429, 503 and 529
};

/// Seconds before retry `retry` (counted from 1): what the provider asked for, else exponential, shortened by
/// up to a quarter by `jitter` in [0, 1) so that many clients do not return together.
double wait_s(const RetryPolicy& policy, int retry, const Fault& fault, double jitter);

/// Seconds until a provider that announces "none left" admits the next request, from x-ratelimit-* (OpenAI
/// and others: durations such as "6m0s" or "100ms", or seconds) and anthropic-ratelimit-* (times, against
/// `Date`). 0: now.
double announced_wait_s(const std::vector<http::Header>& headers);

/// After `most_failures` calls in a row have failed, further calls are refused at once for `pause_s`; then
/// one is let through, and its outcome decides. Safe to use from several threads.
class CircuitBreaker {
 public:
  explicit CircuitBreaker(int most_failures = 3, double pause_s = 60)
      : most_failures_(most_failures), pause_s_(pause_s) {}
  bool admits(double now_s);
  void report(bool success, double now_s);

 private:
  std::mutex mutex_;
  int most_failures_;
  double pause_s_;
  int failures_ = 0;
  std::optional<double> closed_until_s_{};
};

}  // namespace sextant::llm
