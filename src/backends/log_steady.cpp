#include "backends/log_steady.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sextant::backends {
namespace {

bool usable(std::optional<double> value) { return value && std::isfinite(*value) && *value > 0; }

std::optional<double> global_batch(const LogStep& step, const LogSettings& settings) {
  if (usable(step.global_batch)) return step.global_batch;
  if (settings.global_batch > 0) return settings.global_batch;
  return std::nullopt;
}

double middle(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Spread spread(const std::vector<double>& values) {
  Spread result;
  result.count = values.size();
  const auto count = static_cast<double>(values.size());
  for (const double value : values) result.mean += value;
  result.mean /= count;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  if (values.size() > 1) result.deviation = std::sqrt(squares / (count - 1));
  result.median = middle(values);
  const auto [smallest, largest] = std::ranges::minmax(values);
  result.smallest = smallest;
  result.largest = largest;
  return result;
}

double harmonic_mean(const std::vector<double>& values) {
  double inverse = 0;
  for (const double value : values) inverse += 1 / value;
  return static_cast<double>(values.size()) / inverse;
}

/// The values that are there, of the steps that have one.
template <typename Value>
std::vector<double> collect(std::span<const LogStep> steps, const Value& value_of) {
  std::vector<double> values;
  for (const LogStep& step : steps) {
    if (const auto value = value_of(step); usable(value)) values.push_back(*value);
  }
  return values;
}

/// How long a step takes, in whatever unit all steps share.
std::optional<double> slowness(const LogStep& step, const LogSettings& settings) {
  if (const auto time = step_time_s(step, settings); usable(time)) return time;
  if (const auto rate = tokens_per_s_per_gpu(step, settings); usable(rate)) return 1 / *rate;
  if (usable(step.samples_per_s)) return 1 / *step.samples_per_s;
  return std::nullopt;
}

std::size_t settling_steps(std::span<const LogStep> steps, const LogSettings& settings) {
  std::vector<double> later;
  for (const LogStep& step : steps.subspan(steps.size() / 2)) {
    if (const auto slow = slowness(step, settings)) later.push_back(*slow);
  }
  if (later.empty()) return 0;
  const double settled = middle(later);
  std::size_t count = 0;
  while (count < steps.size() / 2) {
    const auto slow = slowness(steps[count], settings);
    if (slow && *slow <= kSettledRatio * settled) break;
    ++count;
  }
  return count;
}

/// Ten per cent: more than rounding in the log, less than any mistaken batch or sequence length.
constexpr double kContradiction = 0.10;

void note_contradictions(std::span<const LogStep> steps, const LogSettings& settings,
                         std::vector<std::string>& notes) {
  if (steps.empty()) return;
  const LogStep& step = steps.back();
  if (usable(step.global_batch) && settings.global_batch > 0 && *step.global_batch != settings.global_batch) {
    notes.push_back(
        fmt::format("the log says a global batch of {:.0f}, the configuration {:.0f}; the log's is used",
                    *step.global_batch, settings.global_batch));
  }
  if (!usable(step.tokens_per_s_per_gpu)) return;
  LogStep silent = step;
  silent.tokens_per_s_per_gpu.reset();
  const auto derived = tokens_per_s_per_gpu(silent, settings);
  if (!usable(derived)) return;
  if (std::abs(*derived / *step.tokens_per_s_per_gpu - 1) <= kContradiction) return;
  notes.push_back(fmt::format(
      "the log prints {:.0f} tokens/s/GPU, but its step time and batch with {:.0f} tokens a sequence "
      "and {} GPUs give {:.0f}; the printed rate is used",
      *step.tokens_per_s_per_gpu, settings.sequence_length_tokens, settings.gpus, *derived));
}

}  // namespace

std::optional<double> step_time_s(const LogStep& step, const LogSettings& settings) {
  if (usable(step.time_s)) return step.time_s;
  const auto batch = global_batch(step, settings);
  if (!batch) return std::nullopt;
  if (usable(step.samples_per_s)) return *batch / *step.samples_per_s;
  if (usable(step.tokens_per_s_per_gpu) && settings.gpus > 0 && settings.sequence_length_tokens > 0) {
    return *batch * settings.sequence_length_tokens / (*step.tokens_per_s_per_gpu * settings.gpus);
  }
  return std::nullopt;
}

std::optional<double> tokens_per_s_per_gpu(const LogStep& step, const LogSettings& settings) {
  if (usable(step.tokens_per_s_per_gpu)) return step.tokens_per_s_per_gpu;
  if (settings.gpus <= 0 || settings.sequence_length_tokens <= 0) return std::nullopt;
  const auto batch = global_batch(step, settings);
  if (usable(step.time_s) && batch) {
    return *batch * settings.sequence_length_tokens / (*step.time_s * settings.gpus);
  }
  if (usable(step.samples_per_s))
    return *step.samples_per_s * settings.sequence_length_tokens / settings.gpus;
  return std::nullopt;
}

Steady steady_pace(std::span<const LogStep> steps, const LogSettings& settings,
                   std::vector<std::string>& notes) {
  Steady steady;
  note_contradictions(steps, settings, notes);
  steady.dropped_first = std::min(steps.size(), static_cast<std::size_t>(std::max(settings.drop_first, 0)));
  steps = steps.subspan(steady.dropped_first);
  if (settings.drop_settling) steady.dropped_settling = settling_steps(steps, settings);
  steps = steps.subspan(steady.dropped_settling);

  const auto times = collect(steps, [&](const LogStep& step) { return step_time_s(step, settings); });
  if (!times.empty()) steady.step_time_s = spread(times);
  const auto rates =
      collect(steps, [&](const LogStep& step) { return tokens_per_s_per_gpu(step, settings); });
  if (!rates.empty()) {
    steady.tokens_per_s_per_gpu = spread(rates);
    steady.tokens_per_s_per_gpu->mean = harmonic_mean(rates);
  }
  const auto flops = collect(steps, [](const LogStep& step) { return step.tflops_per_gpu; });
  if (!flops.empty()) steady.tflops_per_gpu = harmonic_mean(flops);
  const auto mfus = collect(steps, [](const LogStep& step) { return step.mfu; });
  if (!mfus.empty()) steady.mfu = harmonic_mean(mfus);
  return steady;
}

}  // namespace sextant::backends
