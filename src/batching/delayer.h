// The prefill delayer: whether ranks may prefill in this tick.
//
// Ranks with data-parallel attention meet in every layer of experts, so a step takes as long as its slowest
// rank, and one rank that prefills while the others decode makes all of them slow. Holding prefill back until
// ranks can do it together costs time to first token and buys throughput.
//
// Policies are pure functions of the table of reports and a small state that is equal on all ranks:
//   off      never holds.
//   anchor   ROCm/ATOM's coalescer (atom/model_engine/prefill_delayer.py, commit ffdf3bb5): holds until all
//            ranks are ready and together have filled a share of their budgets, with exits for a queue that
//            grows no more, a full cache, partial prompts and a bound on held ticks.
//   sglang   SGLang's (python/sglang/srt/managers/prefill_delayer.py): holds while some ranks are ready and
//            some not, for a bounded number of passes, unless a ready rank's cache is nearly empty.
// A request that is ready is held back by at most ttft_max_ticks (anchor) or max_passes - 1 (sglang) ticks in
// a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sextant::batching {

/// What a rank says of itself before planning, after looking into the prefix cache and checking seats and
/// blocks; it has admitted nothing yet.
struct RankReport {
  bool has_work = false;
  bool shutdown = false;            ///< takes no more requests
  bool prefillable = false;         ///< a prompt could be computed in this tick, in part or whole
  std::int64_t pending_tokens = 0;  ///< prompt tokens that could be, at most the budget of a step
  std::int64_t decoding = 0;        ///< sequences that draw a token each step
  std::int64_t kv_used_permille = 0;
  bool kv_high = false;      ///< prefillable and above the high watermark
  bool kv_low = false;       ///< prefillable and below the low one
  bool has_partial = false;  ///< prompts that are computed in part
  bool queue_hot = false;    ///< prefillable and the oldest request waits longer than it should
  std::int64_t free_seats = 0;
  std::int64_t step_us = 0;  ///< of the last step

  friend bool operator==(const RankReport&, const RankReport&) = default;
};

enum class DelayPolicy { kOff, kAnchor, kSglang };

/// Defaults: those that a server of either project really uses.
struct DelayerSettings {
  DelayPolicy policy = DelayPolicy::kOff;
  std::int64_t step_tokens = 0;  ///< budget of a rank's step
  std::int64_t target_fill_permille = 900;
  std::int64_t ttft_max_ticks = 200;
  std::int64_t partial_max_ticks = 100;
  std::int64_t stall_ticks = 10;
  std::int64_t kv_high_permille = 900;
  std::int64_t kv_low_permille = 0;  ///< 0: no low watermark
  std::int64_t max_queue_us = 0;     ///< 0: no bound in time
  std::int64_t max_passes = 30;      ///< sglang's
};

/// Values outside their range moved to its end, as the anchor does.
DelayerSettings clamped(DelayerSettings settings);

enum class Reason {
  kOff,
  kFirst,        ///< anchor: the first tick of all
  kVacuous,      ///< no rank has anything to prefill
  kNoDecode,     ///< anchor: no rank decodes, so waiting hides behind nothing
  kKv,           ///< a ready rank's cache is full (anchor) or nearly empty (both)
  kQueue,        ///< a request waits too long
  kTtft,         ///< held for as many ticks as allowed
  kPartial,      ///< the same, with partial prompts
  kFill,         ///< enough tokens
  kStall,        ///< the queue grows no more
  kAllReady,     ///< sglang: without a wait
  kWaitSuccess,  ///< sglang: after one
  kTimeout,      ///< sglang: the last pass
  kHoldAlign,    ///< held: not all ranks are ready
  kHoldFill,     ///< held: all are, with too little
};
inline constexpr std::size_t kReasons = 15;
const char* name_of(Reason reason);

struct Verdict {
  bool prefill = true;
  Reason reason = Reason::kOff;
  bool shutdown = false;  ///< all ranks were told to, and nobody has work
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

struct DelayerState {
  bool started = false;
  std::int64_t held = 0;  ///< ticks in a row
  std::int64_t stalled = 0;
  std::int64_t pending_before = -1;
  friend bool operator==(const DelayerState&, const DelayerState&) = default;
};

/// Whether prefill may run, and why. Changes the state.
Verdict delay(const DelayerSettings& settings, std::span<const RankReport> reports, DelayerState& state);

}  // namespace sextant::batching
