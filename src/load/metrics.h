// How answers are judged: the metrics of InferenceX's serving benchmark
// (github.com/SemiAnalysisAI/InferenceX, utils/bench_serving), and some beside them.
//
// | name      | of          | definition                                                                    |
// |-----------|-------------|-------------------------------------------------------------------------------|
// | TTFT      | request     | first chunk − sent. Waiting in the client is not in it, waiting in the server
// is | | TPOT      | request > 1 token | (last chunk − first chunk)/(tokens − 1), with the tokens that really
// came | | ITL       | chunk       | gap to the chunk before, however many tokens it holds: the reference's |
// | token ITL | token       | a chunk's gap shared equally by its tokens: what a reader sees on average | |
// E2EL      | request     | last chunk − sent                                                             |
// | queue     | request     | sent − due: the wait in the client that TTFT leaves out |
//
// Throughputs divide by the wall time of the whole run, ramp-up and drain included. Only whole answers count.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "load/timeline.h"

namespace sextant::load {

/// Linear interpolation between the two nearest of the sorted values, as numpy.percentile's default.
/// `percent` within 0…100; at least one value.
double percentile(std::span<const double> sorted, double percent);

struct Summary {
  std::int64_t count = 0;  ///< 0: the figures mean nothing
  double mean = 0;
  double median = 0;
  double std = 0;  ///< of the values themselves, not of a sample: numpy.std's default
  std::vector<double> percentiles{};
};

Summary summarise(std::vector<double> values, std::span<const double> percents);

/// Limits that a good request keeps, each where it is given.
struct Objectives {
  std::optional<double> ttft_s{};
  std::optional<double> tpot_s{};
  std::optional<double> e2el_s{};

  bool any() const { return ttft_s || tpot_s || e2el_s; }
};

/// Keeps every limit; a single token's TPOT counts as 0.
bool is_good(const Timeline& timeline, const Objectives& objectives);

struct Metrics {
  double duration_s = 0;
  std::int64_t completed = 0;
  std::int64_t failed = 0;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  double request_throughput = 0;  ///< requests/s
  double input_throughput = 0;    ///< tokens/s, as the next three
  double output_throughput = 0;
  double total_throughput = 0;
  /// The busiest of equal parts of the run, each of at most one second: never below the average.
  double peak_output_throughput = 0;
  std::optional<double> request_goodput{};  ///< good requests/s; where there are objectives
  double concurrency = 0;                   ///< Σ E2EL/duration: answers under way on average
  Summary ttft{}, tpot{}, itl{}, token_itl{}, e2el{}, queue{};  ///< seconds
  /// Whole answers by where their token count comes from.
  std::int64_t counted_by_usage = 0, counted_by_tokenizer = 0, counted_by_chunks = 0;
};

/// `begin_s` to `end_s`: the run, from its first arrival to its last answer.
Metrics judge(std::span<const Timeline> timelines, double begin_s, double end_s, const Objectives& objectives,
              std::span<const double> percents);

}  // namespace sextant::load
