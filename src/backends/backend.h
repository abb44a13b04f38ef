// Which framework, in which version: what the words in a job and on the command line stand for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::backends {

enum class Backend : std::uint8_t {
  kMegatronCore,  ///< NVIDIA/Megatron-LM with its own training loop
  kPrimus,        ///< AMD-AGI/Primus, which patches a Megatron-LM of its choice
  kTorchtitan,    ///< pytorch/torchtitan
};
inline constexpr int kBackends = 3;

/// Generation of torchtitan's main branch as of August 2026 (commit b5bcd76c); releases 0.1 and 0.2 are 1
/// and 2.
inline constexpr int kTorchtitanMain = 3;

struct BackendVersion {
  Backend backend = Backend::kMegatronCore;
  std::string_view version;  ///< as people write it: "0.15", "26.5", "main"
  /// What the version can do: the minor number of the Megatron-core that it is or is built on; for torchtitan
  /// 1, 2 or kTorchtitanMain.
  int generation = 0;
};

/// "megatron-core", "primus", "torchtitan".
std::span<const std::string_view> backend_names();
std::string_view name(Backend backend);

/// Versions whose checks have been read, oldest first.
std::span<const BackendVersion> known_versions(Backend backend);

/// The backend called `name` ("megatron-lm" and "megatron" mean megatron-core) at `version`: "0.15",
/// "v0.15.2" and "core_v0.15.0" are one; empty is the newest known. For Primus either its own release
/// ("26.5") or the Megatron-core below it ("0.16"). Throws base::UserError for an unknown name or version.
BackendVersion resolve_backend(std::string_view name, std::string_view version);

}  // namespace sextant::backends
