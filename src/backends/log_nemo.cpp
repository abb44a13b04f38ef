// Lines of NeMo. Version 2 (nemo/lightning/pytorch/callbacks/progress_printer.py) prints "Training epoch 0,
// iteration 28/99 | lr: 5.6e-06 | global_batch_size: 32 | global_step: 28 | reduced_train_loss: 2.778 |
// train_step_timing in s: 0.189"; version 1 draws PyTorch Lightning's progress bar, "Epoch 0:  1%| |
// 800/80000 [9:00:00<880:00:00, 40.50s/it, loss=3.2, reduced_train_loss=3.150, global_step=799.0,
// consumed_samples=1.64e+6]". Both count steps from 0.

#include <cmath>
#include <string_view>

#include "backends/log_numbers.h"
#include "backends/log_step.h"
#include "base/text.h"

namespace sextant::backends {
namespace {

bool read_printer_line(std::string_view line, LogFacts& facts) {
  const auto start = after_label(line, "Training epoch ");
  if (!start) return false;
  LogStep step;
  auto rest = after_label(*start, "iteration ");
  if (!rest) return false;
  const auto iteration = take_number(*rest);
  if (!iteration || !(*iteration >= 0) || *iteration > 1e15) return false;
  step.step = static_cast<std::int64_t>(*iteration);
  if (rest->starts_with('/')) facts.total_steps = count_at(rest->substr(1));
  // The iteration starts again with each epoch.
  if (const auto global = after_label(*start, "global_step:")) {
    step.step = count_at(*global).value_or(step.step);
  }
  step.time_s = labelled_number(*start, "train_step_timing in s:");
  step.tokens_per_s_per_gpu = labelled_number(*start, "tokens_per_sec_per_gpu:");
  step.tflops_per_gpu = labelled_number(*start, "TFLOPS_per_GPU:");
  step.global_batch = labelled_number(*start, "global_batch_size:");
  step.consumed_samples = labelled_number(*start, "consumed_samples:");
  step.loss = labelled_number(*start, "reduced_train_loss:");
  step.grad_norm = labelled_number(*start, "grad_norm:");
  // Bytes, from torch.cuda.max_memory_allocated().
  facts.memory.allocated_bytes = labelled_number(*start, "peak_memory_usage:");
  facts.format = "nemo";
  facts.step = step;
  return true;
}

/// "40.50s/it" or "1.30it/s" before the first comma after `text`'s clock; both name a step's duration.
std::optional<double> bar_time_s(std::string_view bar) {
  while (!bar.empty()) {
    const std::size_t comma = bar.find(',');
    std::string_view item = base::trim(bar.substr(0, comma));
    if (const auto number = take_number(item); number && *number > 0 && std::isfinite(*number)) {
      if (item.starts_with("s/it")) return *number;
      if (item.starts_with("it/s")) return 1 / *number;
    }
    if (comma == std::string_view::npos) return std::nullopt;
    bar.remove_prefix(comma + 1);
  }
  return std::nullopt;
}

bool read_bar_line(std::string_view line, LogFacts& facts) {
  const std::size_t open = line.find('[');
  if (open == std::string_view::npos || !after_label(line, "Epoch ")) return false;
  // Without one of these it is a bar of something else.
  const auto global = after_label(line, "global_step=");
  const auto loss = after_label(line, "reduced_train_loss=");
  if (!global && !loss) return false;
  const std::size_t clock = line.find('<');
  if (clock == std::string_view::npos) return false;
  const std::string_view bar = line.substr(clock);
  LogStep step;
  const std::size_t slash = line.rfind('/', clock);
  if (slash != std::string_view::npos) facts.total_steps = count_at(line.substr(slash + 1));
  if (global) {
    const auto number = count_at(*global);
    if (!number) return false;
    step.step = *number;
    if (facts.total_steps) --*facts.total_steps;  // of 80000 steps the last is number 79999
  } else {
    const std::size_t position = slash == std::string_view::npos ? slash : line.rfind(' ', slash);
    const auto number = position == std::string_view::npos ? std::nullopt : count_at(line.substr(position));
    if (!number) return false;
    step.step = *number;
  }
  step.time_s = labelled_number(bar, "train_step_timing in s=");
  if (!step.time_s) step.time_s = bar_time_s(bar);
  if (loss) step.loss = number_at(*loss);
  step.consumed_samples = labelled_number(bar, "consumed_samples=");
  step.global_batch = labelled_number(bar, "global_batch_size=");
  step.grad_norm = labelled_number(bar, "grad_norm=");
  facts.format = "nemo";
  facts.step = step;
  return true;
}

}  // namespace

bool read_nemo_line(std::string_view line, LogFacts& facts) {
  return read_printer_line(line, facts) || read_bar_line(line, facts);
}

}  // namespace sextant::backends
