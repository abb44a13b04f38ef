#include "batching/cache_memory.h"

#include <algorithm>

#include "base/check.h"

namespace sextant::batching {

CacheMemory::CacheMemory(const CacheSpec& spec, bool finds_prefixes, HashFunction hash)
    : spec_(spec),
      finds_prefixes_(finds_prefixes),
      pool_(spec.blocks),
      prefixes_(spec.blocks, spec.block_tokens, hash),
      states_(spec.state_slots) {}

Hit CacheMemory::find(std::span<const TokenId> tokens, const std::string& salt) const {
  const std::int64_t to_compute = std::max<std::int64_t>(1, spec_.successor_tokens);
  const std::int64_t most = static_cast<std::int64_t>(tokens.size()) - to_compute;
  if (!finds_prefixes_ || most < spec_.block_tokens) return {};
  Hit hit{.blocks = prefixes_.find(tokens, salt, most / spec_.block_tokens)};
  if (!with_states()) return hit;
  while (!hit.blocks.empty()) {
    hit.checkpoint = states_.find(hit.blocks.back().chain.serial);
    if (hit.checkpoint >= 0 && states_.can_take(hit.checkpoint)) return hit;
    hit.blocks.pop_back();
  }
  hit.checkpoint = -1;
  return hit;
}

std::int64_t CacheMemory::unused_beside(const Hit& hit) const {
  std::int64_t unused = pool_.unused();
  for (const PrefixCache::Found& found : hit.blocks) unused -= pool_.users(found.block) == 0 ? 1 : 0;
  return unused;
}

bool CacheMemory::has_state_for(const Hit& hit) const {
  return !with_states() || states_.can_take(hit.checkpoint);
}

Holding CacheMemory::begin(const Hit& hit, std::vector<CacheOperation>& before) {
  Holding holding;
  for (const PrefixCache::Found& found : hit.blocks) {
    pool_.share(found.block);
    holding.table.push_back(found.block);
    holding.chain = found.chain;
  }
  holding.chained_blocks = static_cast<std::int64_t>(hit.blocks.size());
  if (!with_states()) return holding;
  if (hit.checkpoint >= 0) states_.hold(hit.checkpoint);
  holding.state_slot = states_.take(hit.checkpoint);
  SEXTANT_CHECK_GT(holding.state_slot, -1);
  if (hit.checkpoint >= 0) {
    before.push_back({.kind = CacheOperation::Kind::kCopy, .to = holding.state_slot, .from = hit.checkpoint});
  } else {
    before.push_back({.kind = CacheOperation::Kind::kClear, .to = holding.state_slot});
  }
  return holding;
}

std::int32_t CacheMemory::take() {
  const std::int32_t block = pool_.take();
  if (prefixes_.holds(block)) {
    states_.forget(prefixes_.serial(block));
    prefixes_.forget(block);
  }
  return block;
}

void CacheMemory::grow(Holding& holding, std::int64_t positions) {
  while (static_cast<std::int64_t>(holding.table.size()) < blocks_for(positions)) {
    holding.table.push_back(take());
  }
}

void CacheMemory::give_back_before(Holding& holding, std::int64_t first_position) {
  if (spec_.window_tokens == 0) return;
  const std::int64_t first_read = first_position - spec_.window_tokens + 1;
  while ((holding.given_back + 1) * spec_.block_tokens <= first_read) {
    std::int32_t& block = holding.table[static_cast<std::size_t>(holding.given_back++)];
    pool_.release(block, prefixes_.holds(block));
    block = -1;
  }
}

void CacheMemory::publish(Holding& holding, std::span<const TokenId> tokens, const std::string& salt,
                          std::int64_t positions) {
  if (!finds_prefixes_) return;
  while ((holding.chained_blocks + 1) * spec_.block_tokens <= positions) {
    const auto first = static_cast<std::size_t>(holding.chained_blocks * spec_.block_tokens);
    const std::int32_t block = holding.table[static_cast<std::size_t>(holding.chained_blocks)];
    holding.chain = prefixes_.publish(block, holding.chain, salt,
                                      tokens.subspan(first, static_cast<std::size_t>(spec_.block_tokens)));
    ++holding.chained_blocks;
  }
}

void CacheMemory::checkpoint(const Holding& holding, std::int64_t positions,
                             std::vector<CacheOperation>& after) {
  if (!with_states() || !finds_prefixes_ || spec_.checkpoint_interval_tokens == 0) return;
  if (positions % spec_.checkpoint_interval_tokens != 0 || holding.chain.serial == 0) return;
  if (holding.chained_blocks * spec_.block_tokens != positions) return;
  if (states_.find(holding.chain.serial) >= 0) return;
  const bool planned = std::ranges::any_of(
      new_checkpoints_, [&](const NewCheckpoint& each) { return each.serial == holding.chain.serial; });
  const std::int32_t slot = planned ? -1 : states_.take();
  if (slot < 0) return;
  after.push_back({.kind = CacheOperation::Kind::kCopy, .to = slot, .from = holding.state_slot});
  new_checkpoints_.push_back({holding.chain.serial, slot});
}

void CacheMemory::commit() {
  states_.let_go();
  for (const NewCheckpoint& each : new_checkpoints_) states_.keep(each.serial, each.slot);
  new_checkpoints_.clear();
}

void CacheMemory::end(Holding& holding) {
  // The last blocks first: of a prompt that is partly lost, the beginning is worth most.
  while (!holding.table.empty()) {
    const std::int32_t block = holding.table.back();
    holding.table.pop_back();
    if (block >= 0) pool_.release(block, prefixes_.holds(block));
  }
  if (holding.state_slot >= 0) states_.release(holding.state_slot);
  holding = {};
}

}  // namespace sextant::batching
