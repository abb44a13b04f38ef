#include <fmt/format.h>

#include "base/error.h"
#include "batching/scheduler.h"

namespace sextant::batching {
namespace {

void require(bool holds, const char* flag, const char* message) {
  if (!holds) throw base::UserError({flag}, {}, message);
}

/// Products of any two stay far from overflow.
constexpr std::int64_t kMost = std::int64_t{1} << 31;

void require_between(std::int64_t least, std::int64_t value, const char* flag) {
  if (value >= least && value <= kMost) return;
  throw base::UserError({flag}, {}, fmt::format("{} is outside {} to {}", value, least, kMost));
}

}  // namespace

void require_sane(const Settings& settings) {
  const CacheSpec& cache = settings.cache;
  require(cache.blocks > 0, "--kv-cache-bytes", "has no room for a single block; give more");
  require_between(1, cache.blocks, "--kv-cache-bytes");
  require_between(1, cache.block_tokens, "--block-tokens");
  require_between(1, settings.seats, "--max-num-seqs");
  require_between(1, settings.step_tokens, "--max-num-batched-tokens");
  require_between(0, settings.max_positions, "--max-model-len");
  require_between(0, settings.max_step_us, "--max-itl-ms");
  require_between(0, settings.chunk_tokens, "chunk_tokens");
  require_between(1, settings.ageing_us, "ageing_us");
  require_between(0, settings.decode_every_ticks, "decode_every_ticks");
  require_between(1, settings.prefill_every_ticks, "prefill_every_ticks");
  require_between(0, cache.window_tokens, "window_tokens");
  require_between(0, cache.state_slots, "state_slots");
  require_between(0, cache.successor_tokens, "successor_tokens");
  require_between(0, cache.checkpoint_interval_tokens, "checkpoint_interval_tokens");
  require(cache.checkpoint_interval_tokens % cache.block_tokens == 0, "checkpoint_interval_tokens",
          "must be a multiple of the tokens of a block");
  StepPrice::Point before;
  for (const StepPrice::Point& point : settings.price.points) {
    require(point.tokens > before.tokens && point.us >= before.us, "price", "must ascend");
    require_between(1, point.tokens, "price");
    require_between(0, point.us, "price");
    before = point;
  }
}

}  // namespace sextant::batching
