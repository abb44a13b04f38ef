#include "load/arrivals.h"

#include <utility>

#include "base/check.h"

namespace sextant::load {

std::vector<double> arrival_times(std::int64_t requests, double rate_per_s, double burstiness,
                                  NumpyRandom& random) {
  std::vector<double> times;
  double now_s = 0;
  for (std::int64_t i = 0; i < requests; ++i) {
    times.push_back(now_s);
    if (rate_per_s != kAllAtOnce) now_s += random.gamma(burstiness, 1.0 / (rate_per_s * burstiness));
  }
  return times;
}

Dispatcher::Dispatcher(std::vector<double> arrivals_s, std::int64_t concurrency)
    : arrivals_s_(std::move(arrivals_s)), concurrency_(concurrency) {}

std::optional<std::size_t> Dispatcher::next(double now_s) {
  if (all_sent() || !has_place() || arrivals_s_[sent_] > now_s) return std::nullopt;
  ++under_way_;
  return sent_++;
}

void Dispatcher::finished() {
  SEXTANT_CHECK_GT(under_way_, 0);
  --under_way_;
}

std::optional<double> Dispatcher::next_due_s() const {
  if (all_sent() || !has_place()) return std::nullopt;
  return arrivals_s_[sent_];
}

}  // namespace sextant::load
