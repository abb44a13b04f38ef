// Lines of DeepSpeed: the throughput timer (deepspeed/utils/timer.py), "epoch=0/micro_step=40/global_step=10,
// RunningAvgSamplesPerSec=25.02, CurrSamplesPerSec=25.70, MemAllocated=4.32GB, MaxMemAllocated=38.49GB",
// before 2022 "0/10, RunningAvg…"; and the pipeline engine (deepspeed/runtime/pipe/engine.py), "steps: 10
// loss: 8.1234 iter time (s): 1.234 samples/sec: 51.8". Samples are those of the whole job: the timer is
// given the train batch size. GB is 1024³.

#include <string_view>

#include "backends/log_numbers.h"
#include "backends/log_step.h"
#include "base/text.h"

namespace sextant::backends {
namespace {

std::optional<std::int64_t> timer_step(std::string_view line) {
  if (const auto global = after_label(line, "global_step=")) return count_at(*global);
  // "[timer.py:198:stop] 0/20, RunningAvg…"
  const std::size_t rates = line.find(", RunningAvgSamplesPerSec=");
  if (rates == std::string_view::npos) return std::nullopt;
  const std::size_t slash = line.rfind('/', rates);
  if (slash == std::string_view::npos) return std::nullopt;
  return count_at(line.substr(slash + 1));
}

bool read_timer_line(std::string_view line, LogFacts& facts) {
  const auto rate = labelled_number(line, "CurrSamplesPerSec=");
  if (!rate) return false;
  const auto number = timer_step(line);
  if (!number) return false;
  LogStep step;
  step.step = *number;
  step.samples_per_s = rate;
  if (const auto peak = after_label(line, "MaxMemAllocated=")) facts.memory.allocated_bytes = bytes_at(*peak);
  facts.format = "deepspeed";
  facts.step = step;
  return true;
}

bool read_engine_line(std::string_view line, LogFacts& facts) {
  const auto time = labelled_number(line, "iter time (s):");
  auto label = after_label(line, "steps:");
  if (!label) label = after_label(line, "step:");
  if (!time || !label) return false;
  std::string_view rest = *label;
  const auto number = count_at(rest);
  if (!number) return false;
  LogStep step;
  step.step = *number;
  step.time_s = time;
  step.samples_per_s = labelled_number(line, "samples/sec:");
  step.loss = labelled_number(line, "loss:");
  take_number(rest);
  rest = base::trim(rest);
  if (rest.starts_with('/')) facts.total_steps = count_at(rest.substr(1));
  facts.format = "deepspeed";
  facts.step = step;
  return true;
}

}  // namespace

bool read_deepspeed_line(std::string_view line, LogFacts& facts) {
  return read_timer_line(line, facts) || read_engine_line(line, facts);
}

}  // namespace sextant::backends
