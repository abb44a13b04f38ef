// The steady pace of a run, from its steps.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/log_step.h"

namespace sextant::backends {

/// What the log may leave unsaid, and how many steps count as warming up.
struct LogSettings {
  double sequence_length_tokens = 0;  ///< 0 = not known
  double global_batch = 0;            ///< sequences; 0 = not known; what the log says wins
  int gpus = 0;                       ///< 0 = not known
  /// The first step compiles kernels, opens connections and fills caches; it is never counted.
  int drop_first = 1;
  /// After those, leading steps slower than kSettledRatio times the median of the later half are dropped as
  /// well, at most half of the steps: auto-tuning takes two or three steps in some frameworks.
  bool drop_settling = true;
};

inline constexpr double kSettledRatio = 1.2;

struct Spread {
  std::size_t count = 0;
  double mean = 0;
  double median = 0;
  double deviation = 0;  ///< standard deviation of the sample; 0 of a single value
  double smallest = 0;
  double largest = 0;
};

struct Steady {
  std::size_t dropped_first = 0;
  std::size_t dropped_settling = 0;
  std::optional<Spread> step_time_s;
  /// The mean is the harmonic one: all tokens over all time.
  std::optional<Spread> tokens_per_s_per_gpu;
  std::optional<double> tflops_per_gpu;  ///< harmonic mean
  std::optional<double> mfu;             ///< harmonic mean, a share
};

/// The duration of a step: printed, or from samples or tokens a second and the batch. Empty when neither.
std::optional<double> step_time_s(const LogStep& step, const LogSettings& settings);

/// Printed, or from batch, sequence length, duration and GPUs. Empty when something is missing.
std::optional<double> tokens_per_s_per_gpu(const LogStep& step, const LogSettings& settings);

/// `steps` in order. What cannot be computed is empty. `notes` receives sentences on contradictions between
/// the log and `settings`.
Steady steady_pace(std::span<const LogStep> steps, const LogSettings& settings,
                   std::vector<std::string>& notes);

}  // namespace sextant::backends
