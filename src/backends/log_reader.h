// Training logs of all ranks of one run, read as they grow: how fast it trained, and how it ended.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/log_lines.h"
#include "backends/log_steady.h"
#include "backends/log_step.h"
#include "backends/log_verdict.h"

namespace sextant::backends {

/// Steps of a run that are kept one by one. A longer run is thinned evenly: every second, fourth, … step.
inline constexpr std::size_t kLogStepsKept = 16 * 1024;

struct LogReport {
  RunJudgement judgement;
  Steady steady;
  std::vector<LogStep> steps;  ///< in order, one each however many ranks printed it
  std::int64_t steps_seen = 0;
  std::optional<std::int64_t> total_steps;
  LogMemory memory;
  std::vector<std::string> formats;             ///< that steps were read in
  std::optional<bool> forced_balanced_routing;  ///< measurements with it are no measurements of real routing
  std::optional<double> expert_skew;            ///< the largest that was printed
  std::int64_t lines = 0;
  std::int64_t cut_lines = 0;      ///< longer than kLogLineBytes
  std::vector<std::string> notes;  ///< contradictions, and what was seen but did not decide
};

/// Reads any number of files in portions, in any order. Memory is bounded by the number of files and
/// kLogStepsKept, time is linear in the bytes. Not thread-safe.
///
/// The same step from several files is one step: the first value of each field stands, peaks of memory are
/// those of the fullest rank. After a restart, steps that were printed before stay as they were.
class TrainingLog {
 public:
  explicit TrainingLog(const LogSettings& settings) : settings_(settings) {}

  /// A file, by the name that evidence shall give it; the number that feed() takes.
  std::size_t add_file(std::string name);
  void feed(std::size_t file, std::string_view bytes);

  /// Distinct steps so far. Grows as long as training gets on.
  std::int64_t steps_seen() const { return steps_seen_; }
  /// The strongest error that was printed and that training has not gone on from: no two steps in the same
  /// file since.
  std::optional<LogSign> broken_by() const;

  /// Call once, after the last feed().
  LogReport report(const RunEnd& end);

 private:
  struct File {
    std::string name;
    LogLines lines;
    std::vector<LogFinding> findings;  ///< at most one of each sign
    std::vector<int> steps_at_finding;
    int steps = 0;
    std::optional<double> pending_tflops_per_gpu;
    LogEvidence last_line;
  };

  void read_line(File& file, std::int64_t number, std::string_view line);
  void take_step(File& file, std::int64_t number, std::string_view line, const LogFacts& facts);
  void take_sign(File& file, std::int64_t number, std::string_view line, LogSign sign);
  void thin();
  LogEvidenceSet evidence() const;

  LogSettings settings_;
  std::vector<File> files_;
  std::map<std::int64_t, LogStep> steps_;
  std::int64_t stride_ = 1;
  std::int64_t steps_seen_ = 0;
  std::int64_t largest_step_ = -1;
  std::int64_t lines_ = 0;
  std::vector<std::string> formats_;
  std::vector<FailedAllocation> failed_allocations_;
  std::optional<LogFinding> broken_loss_;
  LogFacts run_;  ///< what holds for the whole run
};

/// Reads whole files. Throws base::UserError for one that cannot be read.
LogReport read_training_logs(std::span<const std::string> paths, const LogSettings& settings,
                             const RunEnd& end);

}  // namespace sextant::backends
