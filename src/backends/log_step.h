// What one line of a training log says.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sextant::backends {

/// One training step, or the average of the steps since the last line where a framework prints every n-th.
/// What a log does not say is empty, never 0.
struct LogStep {
  std::int64_t step = 0;
  std::optional<double> time_s;
  std::optional<double> tokens_per_s_per_gpu;
  std::optional<double> samples_per_s;  ///< sequences, whole job
  std::optional<double> tflops_per_gpu;
  std::optional<double> mfu;           ///< a share, not per cent
  std::optional<double> global_batch;  ///< sequences
  std::optional<double> consumed_samples;
  std::optional<double> loss;  ///< may be NaN or infinite: see loss_is_broken
  std::optional<double> grad_norm;

  bool loss_is_broken() const;
};

/// Peaks over everything read so far, of the rank that has most.
struct LogMemory {
  std::optional<double> allocated_bytes;  ///< by tensors, in PyTorch's allocator
  std::optional<double> reserved_bytes;   ///< held by the allocator
  std::optional<double> device_bytes;     ///< in use on the device, with contexts and libraries
  std::optional<double> capacity_bytes;   ///< of the device, when the log says or implies it

  /// The larger of both, field by field.
  void raise_to(const LogMemory& other);
};

/// Everything a line may add to what is known of a run.
struct LogFacts {
  std::string_view
      format;  ///< of the step: "megatron-lm", "primus", "torchtitan", "nemo", "deepspeed", "json"
  std::optional<LogStep> step;
  std::optional<std::int64_t> total_steps;
  std::optional<double>
      pending_tflops_per_gpu;          ///< belongs to the step that the next line of this file prints
  std::optional<double> broken_steps;  ///< steps that the framework itself counted as NaN
  LogMemory memory;
  std::optional<bool> forced_balanced_routing;  ///< experts receive equal shares by decree, as in benchmarks
  std::optional<double> expert_skew;            ///< tokens of the busiest expert rank, over the mean
  bool training_ended = false;                  ///< the framework says that training came to its end
};

/// Readers of one framework each. They return true when the line is theirs, and then have set `facts`.
/// `line` is clean (log_lines.h). All find fields by label, never by position, and read the line a fixed
/// number of times.
bool read_megatron_line(std::string_view line, LogFacts& facts);
bool read_torchtitan_line(std::string_view line, LogFacts& facts);
bool read_nemo_line(std::string_view line, LogFacts& facts);
bool read_deepspeed_line(std::string_view line, LogFacts& facts);
bool read_json_line(std::string_view line, LogFacts& facts);

/// The line in whichever format it is written. False for lines that say nothing of interest.
bool read_log_line(std::string_view line, LogFacts& facts);

}  // namespace sextant::backends
