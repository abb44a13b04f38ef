// Sextant's own form: a JSON object on a line of its own, for training loops whose log it cannot read. The
// keys are documented in docs/reference/logs.md.

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "backends/log_lines.h"
#include "backends/log_step.h"

namespace sextant::backends {
namespace {

using nlohmann::json;

/// Python's json.dumps writes NaN and Infinity, which JSON lacks: as strings they survive the parser.
std::string quoted_constants(std::string_view text) {
  std::string quoted;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string && c == '\\' && at + 1 < text.size()) {
      quoted.append(text, at, 2);
      ++at;
      continue;
    }
    if (c == '"') in_string = !in_string;
    std::string_view constant;
    if (!in_string) {
      for (const std::string_view word : {"NaN", "-Infinity", "Infinity"}) {
        if (constant.empty() && text.substr(at, word.size()) == word) constant = word;
      }
    }
    if (constant.empty()) {
      quoted += c;
      continue;
    }
    quoted.append("\"").append(constant).append("\"");
    at += constant.size() - 1;
  }
  return quoted;
}

std::optional<double> number(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  if (found->is_number()) return found->get<double>();
  if (!found->is_string()) return std::nullopt;
  const auto& text = found->get_ref<const std::string&>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

std::optional<double> positive(const json& object, const char* key) {
  const auto value = number(object, key);
  return value && *value > 0 && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::int64_t> count(const json& object, const char* key) {
  const auto value = number(object, key);
  if (!value || !(*value >= 0) || *value > 1e15) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

/// Keys that may come with a step or alone, for instance from a rank that prints no steps.
bool read_run_facts(const json& object, LogFacts& facts) {
  facts.total_steps = count(object, "total_steps");
  facts.memory.allocated_bytes = positive(object, "memory_allocated_bytes");
  facts.memory.reserved_bytes = positive(object, "memory_reserved_bytes");
  facts.memory.device_bytes = positive(object, "memory_device_bytes");
  facts.memory.capacity_bytes = positive(object, "memory_capacity_bytes");
  facts.expert_skew = positive(object, "expert_skew");
  if (const auto forced = object.find("forced_balanced_routing");
      forced != object.end() && forced->is_boolean()) {
    facts.forced_balanced_routing = forced->get<bool>();
  }
  return facts.memory.allocated_bytes || facts.memory.reserved_bytes || facts.memory.device_bytes ||
         facts.expert_skew || facts.forced_balanced_routing;
}

}  // namespace

bool read_json_line(std::string_view line, LogFacts& facts) {
  const std::string_view message = without_log_prefixes(line);
  // What a framework prints as JSON, such as its configuration, names none of these.
  if (!message.starts_with('{') || !message.ends_with('}')) return false;
  const json object = json::parse(quoted_constants(message), nullptr, false);
  if (!object.is_object()) return false;
  const bool facts_of_run = read_run_facts(object, facts);
  LogStep step;
  step.time_s = positive(object, "step_time_s");
  step.tokens_per_s_per_gpu = positive(object, "tokens_per_s_per_gpu");
  step.samples_per_s = positive(object, "samples_per_s");
  const auto index = count(object, "step");
  if (!index || (!step.time_s && !step.tokens_per_s_per_gpu && !step.samples_per_s)) {
    if (!facts_of_run) facts = {};
    return facts_of_run;
  }
  step.step = *index;
  step.tflops_per_gpu = positive(object, "tflops_per_gpu");
  step.mfu = positive(object, "mfu");
  step.global_batch = positive(object, "global_batch");
  step.consumed_samples = positive(object, "consumed_samples");
  step.loss = number(object, "loss");
  step.grad_norm = number(object, "grad_norm");
  facts.format = "json";
  facts.step = step;
  return true;
}

}  // namespace sextant::backends
