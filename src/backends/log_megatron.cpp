// Lines of Megatron-LM's training loop (megatron/training/training.py, training_log), and of what builds on
// it: Primus adds averages ("5400.0/5391.2"), tokens per second and the memory of the device; Megatron-Bridge
// prints the TFLOP/s on a line of their own before the step's; Megatron-DeepSpeed adds rates of its own.
// Fields stand between bars in an order that changes between versions, so each is found by its name.

#include <array>
#include <cmath>
#include <string_view>

#include "backends/log_numbers.h"
#include "backends/log_step.h"
#include "base/text.h"
#include "base/units.h"

namespace sextant::backends {
namespace {

constexpr double kMilliseconds = 1e-3;

/// Calls `visit(name, value)` for every "name: value" between bars.
template <typename Visit>
void for_each_field(std::string_view line, const Visit& visit) {
  while (!line.empty()) {
    const std::size_t bar = line.find('|');
    const std::string_view field = line.substr(0, bar);
    const std::size_t colon = field.find(':');
    if (colon != std::string_view::npos) {
      visit(base::trim(field.substr(0, colon)), base::trim(field.substr(colon + 1)));
    }
    if (bar == std::string_view::npos) return;
    line.remove_prefix(bar + 1);
  }
}

/// Primus: "33.24GB/254.74GB/287.98GB/11.54%", used, free and total of the device.
void read_device_memory(std::string_view value, LogMemory& memory) {
  const auto parts = base::split(value, '/');
  LogMemory read;
  read.device_bytes = bytes_at(parts[0]);
  if (parts.size() > 2) read.capacity_bytes = bytes_at(parts[2]);
  memory.raise_to(read);
}

void read_step_field(std::string_view name, std::string_view value, LogStep& step, LogFacts& facts) {
  const auto scaled = [&](std::optional<double>& field, double factor = 1) {
    if (const auto number = number_at(value); number && !field) field = *number * factor;
  };
  if (name == "elapsed time per iteration (ms)") return scaled(step.time_s, kMilliseconds);
  if (name == "throughput per GPU (TFLOP/s/GPU)" || name == "compute per GPU (TFLOP/s/GPU)" ||
      name == "TFLOPs") {
    return scaled(step.tflops_per_gpu);
  }
  if (name == "tokens per GPU (tokens/s/GPU)" || name == "tokens/s/GPU inst/harmonic mean" ||
      name == "tokens per gpu per second (tgs)") {
    return scaled(step.tokens_per_s_per_gpu);
  }
  if (name == "samples per second") return scaled(step.samples_per_s);
  if (name == "consumed samples") return scaled(step.consumed_samples);
  if (name == "global batch size") return scaled(step.global_batch);
  if (name == "lm loss" || name == "loss") return scaled(step.loss);
  if (name == "grad norm") return scaled(step.grad_norm);
  if (name == "mfu") return scaled(step.mfu, 0.01);
  if (name == "number of nan iterations") return scaled(facts.broken_steps);
  if (name == "hip mem usage/free/total/usage_ratio" || name == "rocm mem usage/free/total/usage_ratio" ||
      name.ends_with("rocm max mem usage/usage_ratio")) {
    return read_device_memory(value, facts.memory);
  }
  if (name == "memory usage/free/total") {  // Primus with torchtitan: reserved first
    LogMemory read;
    read.reserved_bytes = bytes_at(value);
    facts.memory.raise_to(read);
  }
}

/// "[Rank 0] (after 2 iterations) memory (MB) | allocated: 12055.86 | max allocated: 14662.03 | …", where MB
/// is 1024² bytes (report_memory, megatron/training/utils.py), or Megatron-Bridge's "memory (GB) |
/// mem-max-allocated-gigabytes: 194.41 | …", where it is 10⁹.
bool read_memory_line(std::string_view line, LogFacts& facts) {
  if (line.find("memory (MB) |") == std::string_view::npos &&
      line.find("memory (GB) |") == std::string_view::npos) {
    return false;
  }
  LogMemory& memory = facts.memory;
  for_each_field(line, [&](std::string_view name, std::string_view value) {
    const auto number = number_at(value);
    if (!number || !std::isfinite(*number) || *number < 0) return;
    LogMemory read;
    if (name == "max allocated") read.allocated_bytes = *number * base::kMiB;
    if (name == "max reserved") read.reserved_bytes = *number * base::kMiB;
    if (name == "mem-max-allocated-gigabytes") read.allocated_bytes = *number * base::kGB;
    if (name == "mem-max-reserved-gigabytes") read.reserved_bytes = *number * base::kGB;
    memory.raise_to(read);
  });
  return true;
}

/// Megatron-Bridge: "Step Time : 5.39s GPU utilization: 2347.0MODEL_TFLOP/s/GPU".
bool read_utilisation_line(std::string_view line, LogFacts& facts) {
  constexpr std::string_view kUnit = "MODEL_TFLOP/s/GPU";
  if (line.find(kUnit) == std::string_view::npos || line.find("Step Time") == std::string_view::npos) {
    return false;
  }
  facts.pending_tflops_per_gpu = labelled_number(line, "GPU utilization:");
  return facts.pending_tflops_per_gpu.has_value();
}

/// "iteration  71/  100" in the first field. False when the field has no such pair.
bool read_iteration(std::string_view field, LogStep& step, LogFacts& facts) {
  constexpr std::string_view kLabel = "iteration ";
  const std::size_t label = field.rfind(kLabel);
  if (label == std::string_view::npos) return false;
  std::string_view rest = field.substr(label + kLabel.size());
  const auto number = take_number(rest);
  if (!number || !(*number >= 0) || *number > 1e15) return false;
  rest = base::trim(rest);
  if (!rest.starts_with('/')) return false;
  step.step = static_cast<std::int64_t>(*number);
  facts.total_steps = count_at(rest.substr(1));
  return true;
}

}  // namespace

bool read_megatron_line(std::string_view line, LogFacts& facts) {
  if (read_memory_line(line, facts) || read_utilisation_line(line, facts)) return true;
  const std::size_t bar = line.find('|');
  if (bar == std::string_view::npos) return false;
  // The validation line has neither; NeMo's line has neither with blanks.
  if (line.find("elapsed time per iteration") == std::string_view::npos &&
      line.find("consumed samples:") == std::string_view::npos) {
    return false;
  }
  LogStep step;
  if (!read_iteration(line.substr(0, bar), step, facts)) return false;
  for_each_field(line.substr(bar + 1), [&](std::string_view name, std::string_view value) {
    read_step_field(name, value, step, facts);
  });
  const bool primus = line.find("[rank-") != std::string_view::npos ||
                      line.find("mem usage/free/total") != std::string_view::npos ||
                      line.find("tokens/s/GPU") != std::string_view::npos;
  facts.format = primus ? "primus" : "megatron-lm";
  facts.step = step;
  return true;
}

}  // namespace sextant::backends
