#include "server/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"

namespace sextant::server {
namespace {

std::optional<std::int64_t> number_in(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return {};
  try {
    const std::string text(base::trim(base::read_file(file)));
    std::int64_t number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (fault == std::errc() && end == text.data() + text.size()) return number;
  } catch (const base::UserError&) {  // not ours to read
  }
  return {};  // "max", among others
}

std::optional<std::int64_t> memory_available(const std::string& root) {
  constexpr std::string_view kKey = "MemAvailable:";
  const std::string file = root + "/proc/meminfo";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return {};
  for (const std::string& line : base::split(base::read_file(file), '\n')) {
    if (!line.starts_with(kKey)) continue;
    return std::strtoll(line.c_str() + kKey.size(), nullptr, 10) * 1024;
  }
  return {};
}

std::optional<std::int64_t> group_available(const std::string& root) {
  const std::string folder = root + "/sys/fs/cgroup/";
  for (const auto& [limit_file, used_file] :
       {std::pair{"memory.max", "memory.current"},
        std::pair{"memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"}}) {
    const auto limit = number_in(folder + limit_file);
    const auto used = number_in(folder + used_file);
    if (limit && used) return std::max<std::int64_t>(0, *limit - *used);
  }
  return {};
}

[[noreturn]] void refuse(const std::string& flag, const std::string& message) {
  throw base::UserError({flag}, {}, message);
}

std::string bytes_text(std::int64_t bytes) { return base::format_bytes(static_cast<double>(bytes)); }

}  // namespace

std::optional<std::int64_t> available_bytes(const std::string& root) {
  const auto memory = memory_available(root);
  const auto group = group_available(root);
  if (memory && group) return std::min(*memory, *group);
  return memory ? memory : group;
}

CachePlan plan_cache(const CacheNeeds& needs, std::optional<std::int64_t> asked_bytes,
                     std::optional<std::int64_t> available) {
  const std::int64_t of_one = (needs.longest_tokens + needs.block_tokens - 1) / needs.block_tokens;
  CachePlan plan{.blocks = of_one * needs.sequences, .longest_tokens = needs.longest_tokens};
  if (needs.block_bytes == 0) return plan;
  const std::int64_t left = available.value_or(INT64_MAX) - needs.weights_bytes;
  if (left <= 0) {
    refuse("--model", fmt::format("the weights take {}, and {} of memory are available",
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

}  // namespace sextant::server
