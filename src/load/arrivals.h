// When requests come, and when each is sent.
//
// A request is due at its arrival time. It is sent then, or later, when a bound on concurrency makes it wait
// for its turn in the client: first due, first sent. With all arrivals at 0 and a bound C this is a closed
// loop: C requests are always under way, each answer lets the next go.
//
// Times are seconds since the start of the run, on whatever clock the caller has: a load generator's or a
// simulator's.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "load/numpy_random.h"

namespace sextant::load {

inline constexpr double kAllAtOnce = std::numeric_limits<double>::infinity();

/// Times of `requests` arrivals, the first at 0. The gaps are gamma distributed with mean 1/`rate_per_s` and
/// shape `burstiness`: 1 is a Poisson process, less comes in bursts, more is evener. A rate of kAllAtOnce
/// puts all at 0 and draws nothing. Source: the get_request of vLLM's and InferenceX's clients.
std::vector<double> arrival_times(std::int64_t requests, double rate_per_s, double burstiness,
                                  NumpyRandom& random);

/// Gives out requests 0, 1, 2, … in the order of arrival.
class Dispatcher {
 public:
  /// `arrivals_s` do not fall. `concurrency`: requests under way at most; 0: no bound.
  Dispatcher(std::vector<double> arrivals_s, std::int64_t concurrency);

  /// The next request that is to be sent at `now_s`, which counts as under way from here on.
  std::optional<std::size_t> next(double now_s);
  /// One that was under way is over.
  void finished();

  /// When next() has something to give again if nothing finishes; nothing while only an answer can free a
  /// place, or when all are sent.
  std::optional<double> next_due_s() const;
  double due_s(std::size_t request) const { return arrivals_s_[request]; }
  std::int64_t under_way() const { return under_way_; }
  bool all_sent() const { return sent_ == arrivals_s_.size(); }

 private:
  bool has_place() const { return concurrency_ == 0 || under_way_ < concurrency_; }

  std::vector<double> arrivals_s_;
  std::int64_t concurrency_;
  std::size_t sent_ = 0;
  std::int64_t under_way_ = 0;
};

}  // namespace sextant::load
