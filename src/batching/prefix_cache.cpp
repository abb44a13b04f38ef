#include "batching/prefix_cache.h"

#include <algorithm>

#include "batching/hash.h"

namespace sextant::batching {

std::uint64_t chained_hash(std::uint64_t before, std::span<const TokenId> tokens) {
  std::uint64_t hash = before;
  for (const TokenId token : tokens) hash = mix(hash, static_cast<std::uint64_t>(token));
  return hash;
}

std::uint64_t PrefixCache::hash_behind(const Chain& before, const std::string& salt,
                                       std::span<const TokenId> tokens) const {
  std::uint64_t hash = before.hash;
  if (before.serial == 0) {
    for (const char c : salt) hash = mix(hash, static_cast<unsigned char>(c));
  }
  return hash_(hash, tokens);
}

std::int32_t PrefixCache::find_one(std::uint64_t hash, const Chain& before, const std::string& salt,
                                   std::span<const TokenId> tokens) const {
  const auto [first, last] = blocks_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Entry& found = entry(it->second);
    if (found.serial_before != before.serial) continue;
    if (before.serial == 0 && found.salt != salt) continue;
    if (std::ranges::equal(found.tokens, tokens)) return it->second;
  }
  return -1;
}

std::vector<PrefixCache::Found> PrefixCache::find(std::span<const TokenId> tokens, const std::string& salt,
                                                  std::int64_t most_blocks) const {
  std::vector<Found> all;
  Chain chain;
  for (std::int64_t i = 0; i < most_blocks; ++i) {
    const auto own =
        tokens.subspan(static_cast<std::size_t>(i * block_tokens_), static_cast<std::size_t>(block_tokens_));
    const std::uint64_t hash = hash_behind(chain, salt, own);
    const std::int32_t block = find_one(hash, chain, salt, own);
    if (block < 0) break;
    chain = {hash, entry(block).serial};
    all.push_back({block, chain});
  }
  return all;
}

Chain PrefixCache::publish(std::int32_t block, const Chain& before, const std::string& salt,
                           std::span<const TokenId> tokens) {
  const std::uint64_t hash = hash_behind(before, salt, tokens);
  const std::int32_t same = find_one(hash, before, salt, tokens);
  if (same >= 0) return {hash, entry(same).serial};
  Entry& own = entries_[static_cast<std::size_t>(block)];
  own = {.serial = next_serial_++,
         .serial_before = before.serial,
         .hash = hash,
         .salt = before.serial == 0 ? salt : std::string(),
         .tokens = {tokens.begin(), tokens.end()}};
  blocks_.emplace(hash, block);
  return {hash, own.serial};
}

void PrefixCache::forget(std::int32_t block) {
  Entry& own = entries_[static_cast<std::size_t>(block)];
  if (own.serial == 0) return;
  const auto [first, last] = blocks_.equal_range(own.hash);
  blocks_.erase(std::find_if(first, last, [block](const auto& each) { return each.second == block; }));
  own = {};
}

}  // namespace sextant::batching
