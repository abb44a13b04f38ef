// How much memory the cache of keys and values may take, before anything is allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sextant::server {

/// Bytes that this process may still take: the lower of MemAvailable in `<root>/proc/meminfo` and what the
/// control group has left below its limit (`<root>/sys/fs/cgroup`, version 2 or 1). Nothing when neither
/// says.
std::optional<std::int64_t> available_bytes(const std::string& root = "");

struct CacheNeeds {
  std::int64_t block_bytes = 0;  ///< 0: blocks cost nothing
  std::int64_t block_tokens = 16;
  std::int64_t sequences = 1;  ///< at a time
  std::int64_t longest_tokens = 1;
  std::int64_t weights_bytes = 0;
};

struct CachePlan {
  std::int64_t blocks = 0;
  std::int64_t longest_tokens = 0;  ///< that one sequence can have, if that is less than asked for
};

/// As many blocks as all sequences at their longest could use, but no more bytes than `asked_bytes`, or half
/// of what is left of `available_bytes` beside the weights: the other half is for activations, the system's
/// file cache and whoever else is there. Throws base::UserError when the weights do not fit, when
/// `asked_bytes` does not, and when it is less than a block.
CachePlan plan_cache(const CacheNeeds& needs, std::optional<std::int64_t> asked_bytes,
                     std::optional<std::int64_t> available_bytes);

}  // namespace sextant::server
