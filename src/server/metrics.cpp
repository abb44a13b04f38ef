#include "server/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace sextant::server {
namespace {

constexpr const char* kPrefix = "sextant_";

// From a tenth of a millisecond (nothing to compute) to minutes (long prompts on processors), in steps of 1,
// 2, 5.
std::vector<double> latencies() {
  return {0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
          0.5,    1,      2,      5,     10,    20,    50,   100,  200,  500};
}

std::vector<double> lengths() {
  std::vector<double> powers;
  for (double length = 1; length <= (1 << 20); length *= 4) powers.push_back(length);
  return powers;
}

void header(std::string& out, const std::string& name, const std::string& help, const char* type) {
  fmt::format_to(std::back_inserter(out), "# HELP {0}{1} {2}\n# TYPE {0}{1} {3}\n", kPrefix, name, help,
                 type);
}

void counter(std::string& out, const std::string& name, const std::string& help, std::uint64_t value) {
  header(out, name, help, "counter");
  fmt::format_to(std::back_inserter(out), "{}{} {}\n", kPrefix, name, value);
}

}  // namespace

void Histogram::observe(double value) {
  const auto bound = std::ranges::lower_bound(bounds_, value);
  ++counts_[static_cast<std::size_t>(bound - bounds_.begin())];
  sum_ += value;
}

void Histogram::write(std::string& out, const std::string& name, const std::string& help) const {
  header(out, name, help, "histogram");
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < bounds_.size(); ++i) {
    below += counts_[i];
    fmt::format_to(std::back_inserter(out), "{}{}_bucket{{le=\"{}\"}} {}\n", kPrefix, name, bounds_[i],
                   below);
  }
  below += counts_.back();
  fmt::format_to(std::back_inserter(out),
                 "{0}{1}_bucket{{le=\"+Inf\"}} {2}\n{0}{1}_sum {3}\n{0}{1}_count {2}\n", kPrefix, name, below,
                 sum_);
}

Metrics::Metrics()
    : first_token_s_(latencies()),
      between_tokens_s_(latencies()),
      request_s_(latencies()),
      prompt_tokens_histogram_(lengths()),
      completion_tokens_histogram_(lengths()),
      finished_{{"abort", 0}, {"error", 0}, {"length", 0}, {"stop", 0}} {}

void Metrics::request_refused(int status) {
  const std::scoped_lock lock(mutex_);
  ++refused_[status];
}

void Metrics::request_begun(std::int64_t prompt_tokens) {
  const std::scoped_lock lock(mutex_);
  prompt_tokens_ += static_cast<std::uint64_t>(prompt_tokens);
  prompt_tokens_histogram_.observe(static_cast<double>(prompt_tokens));
}

void Metrics::first_token(double since_arrival_s, std::int64_t cached_tokens) {
  const std::scoped_lock lock(mutex_);
  ++generated_tokens_;
  cached_tokens_ += static_cast<std::uint64_t>(cached_tokens);
  first_token_s_.observe(since_arrival_s);
}

void Metrics::later_token(double since_last_s) {
  const std::scoped_lock lock(mutex_);
  ++generated_tokens_;
  between_tokens_s_.observe(since_last_s);
}

void Metrics::sequence_finished(const std::string& reason, std::int64_t completion_tokens) {
  const std::scoped_lock lock(mutex_);
  ++finished_[reason];
  completion_tokens_histogram_.observe(static_cast<double>(completion_tokens));
}

void Metrics::request_finished(double since_arrival_s) {
  const std::scoped_lock lock(mutex_);
  request_s_.observe(since_arrival_s);
}

std::string Metrics::text(std::span<const Sample> others) const {
  std::string out;
  {
    const std::scoped_lock lock(mutex_);
    first_token_s_.write(out, "time_to_first_token_seconds", "From a request's arrival to its first token.");
    between_tokens_s_.write(out, "inter_token_latency_seconds", "Between two tokens of one sequence.");
    request_s_.write(out, "request_duration_seconds", "From a request's arrival to its last token.");
    prompt_tokens_histogram_.write(out, "request_prompt_tokens", "Tokens of the prompts of one request.");
    completion_tokens_histogram_.write(out, "sequence_completion_tokens", "Tokens drawn for one answer.");
    counter(out, "prompt_tokens_total", "Prompt tokens of all requests.", prompt_tokens_);
    counter(out, "cached_prompt_tokens_total", "Prompt tokens taken from the prefix cache.", cached_tokens_);
    counter(out, "generated_tokens_total", "Tokens drawn.", generated_tokens_);
    header(out, "sequences_finished_total", "Answers that are over, by reason.", "counter");
    for (const auto& [reason, count] : finished_) {
      fmt::format_to(std::back_inserter(out), "{}sequences_finished_total{{reason=\"{}\"}} {}\n", kPrefix,
                     reason, count);
    }
    header(out, "requests_refused_total", "Requests that were not served, by status.", "counter");
    for (const auto& [status, count] : refused_) {
      fmt::format_to(std::back_inserter(out), "{}requests_refused_total{{status=\"{}\"}} {}\n", kPrefix,
                     status, count);
    }
  }
  std::string last;
  for (const Sample& sample : others) {
    if (sample.name != last) header(out, sample.name, sample.help, sample.counter ? "counter" : "gauge");
    last = sample.name;
    const std::string labels = sample.labels.empty() ? "" : "{" + sample.labels + "}";
    fmt::format_to(std::back_inserter(out), "{}{}{} {}\n", kPrefix, sample.name, labels, sample.value);
  }
  return out;
}

}  // namespace sextant::server
