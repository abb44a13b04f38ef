// Which blocks hold the keys of which tokens, so that a prompt that begins like an earlier one need not be
// computed again.
//
// A full block is known by a hash over the hash of the block before it and its own tokens, so that one number
// stands for all tokens up to its end. Two different beginnings may have one number: what is found is
// compared, the tokens themselves, and that the block before it is the one that was found before; the first
// block compares the salt as well. A wrong match is impossible, whatever the hash does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "batching/plan.h"

namespace sextant::batching {

/// Of a block's tokens, after a block with hash `before`. Given by tests that force collisions.
using HashFunction = std::uint64_t (*)(std::uint64_t before, std::span<const TokenId> tokens);
std::uint64_t chained_hash(std::uint64_t before, std::span<const TokenId> tokens);

/// All tokens up to the end of some block. `serial` numbers what was published, never again the same number;
/// 0: nothing yet.
struct Chain {
  std::uint64_t hash = 0;
  std::int64_t serial = 0;
  friend bool operator==(const Chain&, const Chain&) = default;
};

class PrefixCache {
 public:
  PrefixCache(std::int64_t blocks, std::int64_t block_tokens, HashFunction hash)
      : entries_(static_cast<std::size_t>(blocks)), block_tokens_(block_tokens), hash_(hash) {}

  struct Found {
    std::int32_t block = 0;
    Chain chain = {};
  };
  /// Blocks that hold the beginning of `tokens`, in order.
  std::vector<Found> find(std::span<const TokenId> tokens, const std::string& salt,
                          std::int64_t most_blocks) const;

  /// Makes a full block findable, behind `before`. A block with the same contents may be there already, and
  /// then stays the one that is found. Returns the chain up to its end.
  Chain publish(std::int32_t block, const Chain& before, const std::string& salt,
                std::span<const TokenId> tokens);

  bool holds(std::int32_t block) const { return entry(block).serial != 0; }
  std::int64_t serial(std::int32_t block) const { return entry(block).serial; }
  /// The block is about to hold something else.
  void forget(std::int32_t block);

 private:
  struct Entry {
    std::int64_t serial = 0;
    std::int64_t serial_before = 0;
    std::uint64_t hash = 0;
    std::string salt = {};  ///< of first blocks
    std::vector<TokenId> tokens = {};
  };
  const Entry& entry(std::int32_t block) const { return entries_[static_cast<std::size_t>(block)]; }
  std::uint64_t hash_behind(const Chain& before, const std::string& salt,
                            std::span<const TokenId> tokens) const;
  std::int32_t find_one(std::uint64_t hash, const Chain& before, const std::string& salt,
                        std::span<const TokenId> tokens) const;

  std::vector<Entry> entries_;
  std::unordered_multimap<std::uint64_t, std::int32_t> blocks_;
  std::int64_t block_tokens_;
  HashFunction hash_;
  std::int64_t next_serial_ = 1;
};

}  // namespace sextant::batching
