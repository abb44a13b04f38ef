#include "backends/log_step.h"

#include <algorithm>
#include <cmath>

#include "backends/log_numbers.h"
#include "base/text.h"

namespace sextant::backends {
namespace {

void raise(std::optional<double>& value, std::optional<double> other) {
  if (other && (!value || *other > *value)) value = other;
}

/// Arguments as Megatron-LM ("moe_router_force_load_balancing ...... True"), Primus and torchtitan
/// ("moe_router_force_load_balancing: true") print them at the start.
bool read_routing_line(std::string_view line, LogFacts& facts) {
  for (const std::string_view name : {"moe_router_force_load_balancing", "moe_force_load_balance"}) {
    auto rest = after_label(line, name);
    if (!rest) continue;
    const std::size_t value = rest->find_first_not_of(" .:=\"'");
    if (value == 0 || value == std::string_view::npos) continue;
    const std::string word = base::lower_case(rest->substr(value, 5));
    if (word.starts_with("true")) facts.forced_balanced_routing = true;
    if (word.starts_with("false")) facts.forced_balanced_routing = false;
    return facts.forced_balanced_routing.has_value();
  }
  return false;
}

bool read_ending_line(std::string_view line, LogFacts& facts) {
  // Megatron-LM, Primus, torchtitan, Lightning (NeMo).
  for (const std::string_view phrase :
       {"[after training is done]", "Training completed", "`Trainer.fit` stopped: `max_steps="}) {
    if (line.find(phrase) == std::string_view::npos) continue;
    facts.training_ended = true;
    return true;
  }
  return false;
}

}  // namespace

bool LogStep::loss_is_broken() const { return loss && !std::isfinite(*loss); }

void LogMemory::raise_to(const LogMemory& other) {
  raise(allocated_bytes, other.allocated_bytes);
  raise(reserved_bytes, other.reserved_bytes);
  raise(device_bytes, other.device_bytes);
  raise(capacity_bytes, other.capacity_bytes);
}

bool read_log_line(std::string_view line, LogFacts& facts) {
  return read_json_line(line, facts) || read_megatron_line(line, facts) || read_nemo_line(line, facts) ||
         read_deepspeed_line(line, facts) || read_torchtitan_line(line, facts) ||
         read_routing_line(line, facts) || read_ending_line(line, facts);
}

}  // namespace sextant::backends
