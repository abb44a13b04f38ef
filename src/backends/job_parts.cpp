#include "backends/job_parts.h"

#include <algorithm>
#include <set>

#include "backends/backend.h"
#include "backends/megatron_keys.h"
#include "backends/rules.h"

namespace sextant::backends {
namespace {

constexpr std::pair<std::string_view, std::string_view> kSameAsKeys[] = {
    {"tp", "tensor_model_parallel_size"},
    {"pp", "pipeline_model_parallel_size"},
    {"cp", "context_parallel_size"},
    {"ep", "expert_model_parallel_size"},
    {"etp", "expert_tensor_parallel_size"},
    {"vpp", "num_virtual_stages_per_pipeline_rank"},
    {"mbs", "micro_batch_size"},
    {"gbs", "global_batch_size"},
    {"seq", "seq_length"},
};

}  // namespace

void set_backend(training::Job& job, const std::string& asked, const config::Node* in_file,
                 const std::string& usual) {
  const std::string text = !asked.empty() ? asked : in_file != nullptr ? config::as_text(*in_file) : usual;
  const std::size_t at = text.find('@');
  const std::string version = at == std::string::npos ? "" : text.substr(at + 1);
  try {
    const BackendVersion resolved = resolve_backend(text.substr(0, at), version);
    job.backend = std::string(name(resolved.backend));
    job.backend_version = version.empty() ? "" : std::string(resolved.version);
  } catch (const base::UserError& error) {
    if (!asked.empty() || in_file == nullptr) throw;
    throw base::UserError(in_file->position, in_file->path, error.message());
  }
}

bool is_cluster_key(const std::string& key) {
  static const std::set<std::string> keys = [] {
    const std::vector<std::string> list = cluster::cluster_keys();
    return std::set<std::string>(list.begin(), list.end());
  }();
  return keys.contains(key);
}

Settings split_settings(const std::vector<std::pair<std::string, config::Node>>& settings) {
  const std::vector<std::string> names = short_names();
  Settings split;
  for (const auto& [name, value] : settings) {
    if (is_cluster_key(name)) continue;
    const auto* same =
        std::ranges::find(kSameAsKeys, name, &std::pair<std::string_view, std::string_view>::first);
    if (same != std::end(kSameAsKeys)) {
      split.keys.emplace_back(same->second, value);
    } else if (std::ranges::find(names, name) != names.end() && find_megatron_key(name) == nullptr) {
      split.knobs.emplace_back(name, value);
    } else {
      split.keys.emplace_back(name, value);
    }
  }
  return split;
}

void apply_knobs(training::Job& job, const Settings& settings) {
  for (const auto& [name, value] : settings.knobs) set_knob(job.layout, name, value);
  if (!settings.knobs.empty()) adapt_software(job);
}

}  // namespace sextant::backends
