#include "backends/backend.h"

#include <fmt/core.h>

#include <array>
#include <cctype>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace sextant::backends {
namespace {

constexpr std::array<std::string_view, kBackends> kNames = {"megatron-core", "primus", "torchtitan"};

constexpr std::pair<std::string_view, Backend> kAliases[] = {
    {"megatron", Backend::kMegatronCore},
    {"megatron-lm", Backend::kMegatronCore},
};

// Tags core_v0.10.0 … core_v0.19.0 of NVIDIA/Megatron-LM.
constexpr BackendVersion kMegatronVersions[] = {
    {Backend::kMegatronCore, "0.10", 10}, {Backend::kMegatronCore, "0.11", 11},
    {Backend::kMegatronCore, "0.12", 12}, {Backend::kMegatronCore, "0.13", 13},
    {Backend::kMegatronCore, "0.14", 14}, {Backend::kMegatronCore, "0.15", 15},
    {Backend::kMegatronCore, "0.16", 16}, {Backend::kMegatronCore, "0.17", 17},
    {Backend::kMegatronCore, "0.18", 18}, {Backend::kMegatronCore, "0.19", 19},
};

// Tags of AMD-AGI/Primus and package_info.py of the Megatron-LM commit in their third_party/.
constexpr BackendVersion kPrimusVersions[] = {
    {Backend::kPrimus, "0.1", 13},  {Backend::kPrimus, "0.2", 13},  {Backend::kPrimus, "0.3", 13},
    {Backend::kPrimus, "0.4", 15},  {Backend::kPrimus, "0.5", 15},  {Backend::kPrimus, "0.6", 15},
    {Backend::kPrimus, "0.7", 15},  {Backend::kPrimus, "26.2", 16}, {Backend::kPrimus, "26.3", 16},
    {Backend::kPrimus, "26.4", 16}, {Backend::kPrimus, "26.5", 16},
};

constexpr BackendVersion kTorchtitanVersions[] = {
    {Backend::kTorchtitan, "0.1", 1},
    {Backend::kTorchtitan, "0.2", 2},
    {Backend::kTorchtitan, "main", kTorchtitanMain},
};

/// "core_v0.15.2" → "0.15", "main" → "main".
std::string_view major_and_minor(std::string_view version) {
  if (version.starts_with("core_")) version.remove_prefix(5);
  if (version.size() > 1 && (version[0] == 'v' || version[0] == 'r') &&
      std::isdigit(static_cast<unsigned char>(version[1]))) {
    version.remove_prefix(1);
  }
  const std::size_t first_dot = version.find('.');
  if (first_dot == std::string_view::npos) return version;
  return version.substr(0, version.find('.', first_dot + 1));
}

Backend backend_from_name(std::string_view text) {
  const std::string wanted = base::lower_case(text);
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == wanted) return static_cast<Backend>(i);
  }
  for (const auto& [alias, backend] : kAliases) {
    if (alias == wanted) return backend;
  }
  const std::vector<std::string> known(kNames.begin(), kNames.end());
  throw base::UserError(fmt::format("backend \"{}\" is unknown; known are {}{}", text,
                                    base::join(known, ", "), base::did_you_mean(wanted, known)));
}

}  // namespace

std::span<const std::string_view> backend_names() { return kNames; }

std::string_view name(Backend backend) { return kNames[static_cast<std::size_t>(backend)]; }

std::span<const BackendVersion> known_versions(Backend backend) {
  switch (backend) {
    case Backend::kMegatronCore:
      return kMegatronVersions;
    case Backend::kPrimus:
      return kPrimusVersions;
    case Backend::kTorchtitan:
      return kTorchtitanVersions;
  }
  return {};
}

BackendVersion resolve_backend(std::string_view name_text, std::string_view version) {
  const Backend backend = backend_from_name(name_text);
  const auto versions = known_versions(backend);
  if (version.empty()) return versions.back();
  const std::string_view wanted = major_and_minor(version);
  for (const BackendVersion& known : versions) {
    if (known.version == wanted) return known;
  }
  if (backend == Backend::kPrimus) {
    // Newest release on the Megatron-core that was named; any Megatron-core may lie below a checkout of one's
    // own.
    for (const BackendVersion& core : kMegatronVersions) {
      if (core.version == wanted) return {Backend::kPrimus, core.version, core.generation};
    }
  }
  std::vector<std::string> texts;
  for (const BackendVersion& known : versions) texts.emplace_back(known.version);
  throw base::UserError(fmt::format("version \"{}\" of {} is unknown; known are {}", version, name(backend),
                                    base::join(texts, ", ")));
}

}  // namespace sextant::backends
