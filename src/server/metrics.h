// Figures for Prometheus, in its text format (prometheus.io/docs/instrumenting/exposition_formats, version
// 0.0.4). Debian's client library would bring a web server of its own along.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace sextant::server {

class Histogram {
 public:
  /// Upper bounds of the buckets, ascending; one without bound is added.
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void observe(double value);
  /// Lines of one metric, header included.
  void write(std::string& out, const std::string& name, const std::string& help) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0.0;
};

/// One figure that somebody else counts, such as the engine.
struct Sample {
  std::string name = {};  ///< without the program's prefix
  std::string help = {};
  bool counter = false;     ///< else a gauge
  std::string labels = {};  ///< such as reason="stall"; empty: none
  double value = 0.0;
};

/// What the server counts. Any thread may call.
class Metrics {
 public:
  Metrics();

  void request_refused(int status);
  void request_begun(std::int64_t prompt_tokens);
  void first_token(double since_arrival_s, std::int64_t cached_tokens);
  void later_token(double since_last_s);
  /// `reason`: stop, length, abort, error.
  void sequence_finished(const std::string& reason, std::int64_t completion_tokens);
  void request_finished(double since_arrival_s);

  /// All of it, and `others`: samples of one name must be neighbours.
  std::string text(std::span<const Sample> others) const;

 private:
  mutable std::mutex mutex_;
  Histogram first_token_s_;
  Histogram between_tokens_s_;
  Histogram request_s_;
  Histogram prompt_tokens_histogram_;
  Histogram completion_tokens_histogram_;
  std::uint64_t prompt_tokens_ = 0;
  std::uint64_t cached_tokens_ = 0;
  std::uint64_t generated_tokens_ = 0;
  std::map<std::string, std::uint64_t> finished_;
  std::map<int, std::uint64_t> refused_;
};

}  // namespace sextant::server
