#include "engine/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"

namespace sextant::engine {
namespace {

/// "" when there is none, or none that may be read.
std::string text_of(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return {};
  try {
    return base::read_file(file);
  } catch (const base::UserError&) {
    return {};
  }
}

/// Nothing for "max", among others.
std::optional<std::int64_t> number_of(std::string_view text) {
  text = base::trim(text);
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

/// The number behind `key` and spaces in a file of such lines.
std::optional<std::int64_t> number_behind(const std::string& text, std::string_view key) {
  for (const std::string& line : base::split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    const std::string_view rest = base::trim(std::string_view(line).substr(key.size()));
    return number_of(rest.substr(0, rest.find(' ')));
  }
  return {};
}

std::optional<std::int64_t> least(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

struct GroupFiles {
  const char* folder;  ///< of the hierarchy
  const char* limit;
  const char* used;
  const char* droppable;  ///< in memory.stat
};
constexpr GroupFiles kVersion2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "};
constexpr GroupFiles kVersion1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file "};

std::optional<std::int64_t> left_in(const std::string& folder, const GroupFiles& files) {
  const auto limit = number_of(text_of(folder + "/" + files.limit));
  const auto used = number_of(text_of(folder + "/" + files.used));
  if (!limit || !used) return {};
  const std::int64_t droppable = number_behind(text_of(folder + "/memory.stat"), files.droppable).value_or(0);
  return std::max<std::int64_t>(0, *limit - *used + droppable);
}

/// The group of this name and all that it lies in. In a container the name may be one of the host's, which is
/// not there: then the container's own, at the root.
std::optional<std::int64_t> left_in_groups(const std::string& root, std::string name,
                                           const GroupFiles& files) {
  std::optional<std::int64_t> left;
  while (!name.empty() && name != "/") {
    left = least(left, left_in(root + files.folder + name, files));
    name.resize(name.rfind('/'));
  }
  return least(left, left_in(root + files.folder, files));
}

std::optional<std::int64_t> left_in_groups(const std::string& root) {
  std::optional<std::int64_t> left =
      least(left_in(root + kVersion2.folder, kVersion2), left_in(root + kVersion1.folder, kVersion1));
  for (const std::string& line : base::split(text_of(root + "/proc/self/cgroup"), '\n')) {
    // HIERARCHY:CONTROLLERS:NAME; version 2 has no controllers.
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || line.find('/') != second + 1) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::vector<std::string> all = base::split(controllers, ',');
    const bool memory = std::ranges::find(all, "memory") != all.end();
    if (!controllers.empty() && !memory) continue;
    left = least(left, left_in_groups(root, line.substr(second + 1), memory ? kVersion1 : kVersion2));
  }
  return left;
}

[[noreturn]] void refuse(const std::string& flag, const std::string& message) {
  throw base::UserError({flag}, {}, message);
}

std::string bytes_text(std::int64_t bytes) { return base::format_bytes(static_cast<double>(bytes)); }

}  // namespace

std::optional<std::int64_t> available_bytes(const std::string& root) {
  std::optional<std::int64_t> memory = number_behind(text_of(root + "/proc/meminfo"), "MemAvailable:");
  if (memory) *memory *= 1024;
  return least(memory, left_in_groups(root));
}

CachePlan plan_cache(const CacheNeeds& needs, std::optional<std::int64_t> asked_bytes,
                     std::optional<std::int64_t> available) {
  const std::int64_t of_one = (needs.longest_tokens + needs.block_tokens - 1) / needs.block_tokens;
  CachePlan plan{.blocks = of_one * needs.sequences, .longest_tokens = needs.longest_tokens};
  if (needs.block_bytes == 0) return plan;
  const std::int64_t left = available.value_or(INT64_MAX) - needs.weights_bytes;
  if (left <= 0) {
    refuse("--model", fmt::format("the weights take {}, and {} of memory are available; free some, raise the "
                                  "limit of the control group, or take a smaller model or dtype",
                                  bytes_text(needs.weights_bytes), bytes_text(*available)));
  }
  if (asked_bytes && *asked_bytes > left) {
    refuse("--kv-cache-bytes",
           fmt::format("{} exceed the {} of memory that are available beside the weights; lower it",
                       bytes_text(*asked_bytes), bytes_text(left)));
  }
  const std::int64_t most = asked_bytes.value_or(left / 2);
  plan.blocks = std::min(plan.blocks, most / needs.block_bytes);
  if (plan.blocks < 1) {
    refuse("--kv-cache-bytes",
           fmt::format("a block of {} tokens takes {}, and {} are allowed; raise it", needs.block_tokens,
                       bytes_text(needs.block_bytes), bytes_text(most)));
  }
  plan.longest_tokens = std::min(plan.longest_tokens, plan.blocks * needs.block_tokens);
  return plan;
}

}  // namespace sextant::engine
