// The cache of one rank as its scheduler sees it: who holds which blocks and states, what can be found again.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "batching/block_pool.h"
#include "batching/plan.h"
#include "batching/prefix_cache.h"
#include "batching/state_pool.h"

namespace sextant::batching {

/// What one admitted sequence holds.
struct Holding {
  std::vector<std::int32_t> table = {};  ///< its blocks in order; -1 for those given back behind the window
  std::int64_t given_back = 0;           ///< blocks at the beginning of the table that are -1
  Chain chain = {};                      ///< up to the last block that was found or published
  std::int64_t chained_blocks = 0;
  std::int32_t state_slot = -1;
};

/// The beginning of a prompt that need not be computed.
struct Hit {
  std::vector<PrefixCache::Found> blocks = {};
  std::int32_t checkpoint = -1;  ///< the slot with the state at its end, for families with states
};

class CacheMemory {
 public:
  CacheMemory(const CacheSpec& spec, bool finds_prefixes, HashFunction hash);

  const CacheSpec& spec() const { return spec_; }
  std::int64_t blocks_for(std::int64_t positions) const {
    return (positions + spec_.block_tokens - 1) / spec_.block_tokens;
  }
  std::int64_t unused() const { return pool_.unused(); }
  std::int64_t used() const { return spec_.blocks - pool_.unused(); }
  const BlockPool& pool() const { return pool_; }
  const StatePool& states() const { return states_; }

  /// The longest known beginning of `tokens`, at least one position and successor_tokens short of their end.
  Hit find(std::span<const TokenId> tokens, const std::string& salt) const;
  /// Unused blocks that remain once the hit's are taken.
  std::int64_t unused_beside(const Hit& hit) const;
  bool has_state_for(const Hit& hit) const;

  /// Takes what was found, and a state slot; says what must happen to that slot before the step.
  Holding begin(const Hit& hit, std::vector<CacheOperation>& before);
  /// Blocks for so many positions. REQUIRES: enough are unused.
  void grow(Holding& holding, std::int64_t positions);
  /// Gives back blocks that no position from `first_position` on will read.
  void give_back_before(Holding& holding, std::int64_t first_position);
  /// Makes all full blocks below `positions` findable, from the step on that writes them: keys are written
  /// before any row of a step reads.
  void publish(Holding& holding, std::span<const TokenId> tokens, const std::string& salt,
               std::int64_t positions);
  /// If the step ends at a place for one: the state is copied after it, and found from the next step on.
  void checkpoint(const Holding& holding, std::int64_t positions, std::vector<CacheOperation>& after);
  /// The step has run.
  void commit();
  void end(Holding& holding);

 private:
  std::int32_t take();
  bool with_states() const { return spec_.state_slots > 0; }

  CacheSpec spec_;
  bool finds_prefixes_;
  BlockPool pool_;
  PrefixCache prefixes_;
  StatePool states_;
  struct NewCheckpoint {
    std::int64_t serial;
    std::int32_t slot;
  };
  std::vector<NewCheckpoint> new_checkpoints_;
};

}  // namespace sextant::batching
