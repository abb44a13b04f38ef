#include "backends/job_parts.h"

#include <algorithm>
#include <set>

#include "backends/backend.h"
#include "backends/megatron_keys.h"

namespace sextant::backends {

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
  for (const auto& setting : settings) {
    if (is_cluster_key(setting.first)) continue;
    const bool is_knob = std::ranges::find(names, setting.first) != names.end();
    const bool is_key = find_megatron_key(setting.first) != nullptr;
    (is_knob && !is_key ? split.knobs : split.keys).push_back(setting);
  }
  return split;
}

}  // namespace sextant::backends
