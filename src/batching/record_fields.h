// The fields of recorded structures, each listed once for writing and reading.
#pragma once

#include <concepts>
#include <type_traits>

#include "batching/agreement.h"
#include "batching/scheduler.h"

namespace sextant::batching {

template <class Fields, class T>
void each_field(Fields& f, T& v)
  requires std::same_as<std::remove_const_t<T>, RankReport>
{
  f(v.has_work), f(v.shutdown), f(v.prefillable), f(v.pending_tokens), f(v.decoding), f(v.kv_used_permille);
  f(v.kv_high), f(v.kv_low), f(v.has_partial), f(v.queue_hot), f(v.free_seats), f(v.step_us);
}

template <class Fields, class T>
void each_field(Fields& f, T& v)
  requires std::same_as<std::remove_const_t<T>, PlanReport>
{
  f(v.kind), f(v.tokens), f(v.sequences), f(v.can_split), f(v.meets_min), f(v.half0), f(v.half1);
}

template <class Fields, class T>
void each_field(Fields& f, T& v)
  requires std::same_as<std::remove_const_t<T>, Verdict>
{
  f(v.prefill), f(v.reason), f(v.shutdown);
}

template <class Fields, class T>
void each_field(Fields& f, T& v)
  requires std::same_as<std::remove_const_t<T>, StepPrice::Point>
{
  f(v.tokens), f(v.us);
}

template <class Fields, class T>
void each_field(Fields& f, T& v)
  requires std::same_as<std::remove_const_t<T>, Outcome>
{
  f(v.id), f(v.token), f(v.ended);
}

/// But for the salt, which is recorded as a number.
template <class Fields, class T>
void each_field(Fields& f, T& v)
  requires std::same_as<std::remove_const_t<T>, Request>
{
  f(v.id), f(v.prompt_tokens), f(v.max_new_tokens), f(v.priority), f(v.pinned_rank), f(v.reads_cache);
  f(v.arrival_us), f(v.end_ids), f(v.prompt);
}

template <class Fields, class T>
void each_field(Fields& f, T& v)
  requires std::same_as<std::remove_const_t<T>, DelayerSettings>
{
  f(v.policy), f(v.step_tokens), f(v.target_fill_permille), f(v.ttft_max_ticks), f(v.partial_max_ticks);
  f(v.stall_ticks), f(v.kv_high_permille), f(v.kv_low_permille), f(v.max_queue_us), f(v.max_passes);
}

template <class Fields, class T>
void each_field(Fields& f, T& v)
  requires std::same_as<std::remove_const_t<T>, OverlapSettings>
{
  f(v.mode), f(v.policy), f(v.min_prefill_tokens), f(v.min_decode_sequences), f(v.least_half_permille);
}

template <class Fields, class T>
void each_field(Fields& f, T& v)
  requires std::same_as<std::remove_const_t<T>, CacheSpec>
{
  f(v.block_tokens), f(v.blocks), f(v.window_tokens), f(v.state_slots), f(v.checkpoint_interval_tokens);
  f(v.successor_tokens);
}

template <class Fields, class T>
void each_field(Fields& f, T& v)
  requires std::same_as<std::remove_const_t<T>, Settings>
{
  each_field(f, v.cache);
  f(v.seats), f(v.step_tokens), f(v.chunk_tokens), f(v.max_positions), f(v.prefix_cache), f(v.admission);
  f(v.phase), f(v.decode_every_ticks), f(v.prefill_every_ticks), f(v.max_step_us), f(v.price.points);
  f(v.ageing_us);
  each_field(f, v.agreement.delayer);
  each_field(f, v.agreement.overlap);
}

}  // namespace sextant::batching
