// Lines of torchtitan (torchtitan/components/metrics.py): "step: 10  loss: 11.5000  grad_norm: 1.9000
// memory: 70.00GiB(88.50%)  tps: 12,345  tflops: 200.00  mfu: 20.22%". tps is per device; memory is the peak
// that the allocator reserved, with its share of the device; versions before 2025 say wps for tps.

#include <cmath>
#include <string_view>

#include "backends/log_numbers.h"
#include "backends/log_step.h"
#include "base/text.h"

namespace sextant::backends {
namespace {

void read_memory(std::string_view line, LogMemory& memory) {
  auto rest = after_label(line, "memory:");
  if (!rest) rest = after_label(line, "mmemory:");  // misprinted by early versions
  if (!rest) return;
  LogMemory read;
  read.reserved_bytes = bytes_at(*rest);
  const std::size_t bracket = rest->find('(');
  if (read.reserved_bytes && bracket != std::string_view::npos && bracket < 16) {
    const auto per_cent = number_at(rest->substr(bracket + 1));
    if (per_cent && *per_cent > 0 && std::isfinite(*per_cent)) {
      read.capacity_bytes = *read.reserved_bytes / (*per_cent / 100);
    }
  }
  memory.raise_to(read);
}

/// "Training starts at step 1, with local batch size 1, global batch size 8, sequence length 8192, total
/// steps 100 (warmup 200)"; newer versions print the same on another line.
bool read_start_line(std::string_view line, LogFacts& facts) {
  if (line.find("sequence length") == std::string_view::npos) return false;
  if (const auto rest = after_label(line, "total steps ")) facts.total_steps = count_at(*rest);
  return facts.total_steps.has_value();
}

}  // namespace

bool read_torchtitan_line(std::string_view line, LogFacts& facts) {
  auto rest = after_label(line, "step:");
  if (!rest) return read_start_line(line, facts);
  const std::size_t label = line.size() - rest->size() - std::string_view("step:").size();
  if (base::trim(line.substr(0, label)).ends_with("validate")) return false;
  auto rate = labelled_number(line, "tps:");
  if (!rate) rate = labelled_number(line, "wps:");
  const auto number = count_at(*rest);
  if (!rate || !number) return false;
  LogStep step;
  step.step = *number;
  step.tokens_per_s_per_gpu = rate;
  step.loss = labelled_number(line, "loss:");
  step.grad_norm = labelled_number(line, "grad_norm:");
  step.tflops_per_gpu = labelled_number(line, "tflops:");
  if (const auto mfu = labelled_number(line, "mfu:")) step.mfu = *mfu / 100;
  read_memory(line, facts.memory);
  facts.format = "torchtitan";
  facts.step = step;
  return true;
}

}  // namespace sextant::backends
