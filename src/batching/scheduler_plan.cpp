// How a step is filled.
//
// Sequences are visited in their order, the first first, and each takes what it needs. One that lacks blocks
// takes them from the last in order that holds any. Such a victim comes later in the order, so it has no
// segment in this plan yet, and what a plan has published is always computed by it.
#include <algorithm>

#include "batching/scheduler.h"

namespace sextant::batching {

const BatchPlan& Scheduler::plan(const Verdict& verdict) {
  plan_ = {.tick = tick_++};
  planned_prefill_ = false;
  planned_decode_ = false;
  if (settings_.phase == Phase::kPrefillFirst) {
    plan_prefill_first(verdict.prefill);
  } else {
    plan_mixed(verdict.prefill);
  }
  prefill_steps_in_row_ = planned_prefill_ && !planned_decode_ ? prefill_steps_in_row_ + 1 : 0;
  steps_since_prefill_ = planned_prefill_ ? 0 : steps_since_prefill_ + 1;
  if (plan_.segments.empty()) {
    ++counters_.idle_steps;
  } else if (!planned_prefill_) {
    plan_.kind = StepKind::kDecode;
    ++counters_.decode_steps;
  } else {
    plan_.kind = planned_decode_ ? StepKind::kMixed : StepKind::kPrefill;
    ++(planned_decode_ ? counters_.mixed_steps : counters_.prefill_steps);
  }
  return plan_;
}

std::int64_t Scheduler::prefill_steps_allowed() const {
  const std::int64_t bound = settings_.decode_every_ticks;
  const std::int64_t step_us = price_us(settings_.price, settings_.step_tokens);
  if (settings_.max_step_us == 0 || step_us == 0) return bound;
  const std::int64_t priced = std::max<std::int64_t>(1, settings_.max_step_us / step_us);
  return bound > 0 ? std::min(bound, priced) : priced;
}

void Scheduler::plan_prefill_first(bool may_prefill) {
  const std::int64_t allowed = prefill_steps_allowed();
  const bool decode_is_due = allowed > 0 && prefill_steps_in_row_ >= allowed && decoding() > 0;
  if (may_prefill && !decode_is_due) plan_prompts(settings_.step_tokens);
  std::int64_t none = 0;
  if (plan_.segments.empty()) plan_running(none, true, false);
  // What decodes may lack blocks that only others can give back.
  if (plan_.segments.empty() && may_prefill && decode_is_due) plan_prompts(settings_.step_tokens);
}

void Scheduler::plan_prompts(std::int64_t budget) {
  plan_running(budget, false, true);
  admit(budget);
}

void Scheduler::plan_mixed(bool may_prefill) {
  std::int64_t budget = may_prefill ? prefill_budget_of_mixed(decoding()) : 0;
  plan_running(budget, true, may_prefill);
  admit(budget);
  // Nothing decodes for want of blocks: no time between tokens is to be kept.
  if (plan_.segments.empty() && may_prefill) plan_prompts(settings_.step_tokens);
}

std::int64_t Scheduler::prefill_budget_of_mixed(std::int64_t decoding) const {
  const std::int64_t whole = settings_.step_tokens - decoding;
  if (decoding == 0 || settings_.max_step_us == 0) return whole;
  const std::int64_t priced =
      most_tokens(settings_.price, settings_.max_step_us, settings_.step_tokens) - decoding;
  const std::int64_t least = std::min(whole, settings_.cache.block_tokens);
  if (priced >= least) return priced;
  return steps_since_prefill_ + 1 >= settings_.prefill_every_ticks ? least : 0;
}

/// One pass over what is admitted. A preemption removes from the end of the order, never the one at hand.
void Scheduler::plan_running(std::int64_t& prefill_budget, bool decodes, bool prefills) {
  for (auto it = running_.begin(); it != running_.end(); ++it) {
    Sequence& sequence = *it->second;
    if (sequence.prefilling && prefills) {
      prefill_budget -= plan_chunk(sequence, prefill_budget);
    } else if (!sequence.prefilling && decodes) {
      plan_token(sequence);
    }
  }
}

/// Waiting sequences strictly in order: one that does not fit holds up those behind it.
void Scheduler::admit(std::int64_t& budget) {
  while (!waiting_.empty() && running() < seats_ && budget > 0) {
    if (!try_admit(*waiting_.begin()->second, budget)) return;
  }
}

bool Scheduler::try_admit(Sequence& sequence, std::int64_t& budget) {
  const Hit hit = find(sequence);
  const std::int64_t cached = static_cast<std::int64_t>(hit.blocks.size()) * settings_.cache.block_tokens;
  if (chunk_of(cached, sequence.length(), budget, !planned_prefill_) == 0) return false;
  if (!memory_.has_state_for(hit) || !can_begin(sequence, hit, growth_reserve())) return false;
  waiting_.erase(sequence.place);
  running_.emplace(sequence.place, &sequence);
  sequence.holding = memory_.begin(hit, plan_.before);
  sequence.computed = cached;
  sequence.prefilling = true;
  if (!sequence.reported) sequence.cached_tokens = std::min(cached, sequence.request.prompt_tokens);
  ++counters_.admissions;
  counters_.cached_tokens += cached;
  counters_.probed_tokens += sequence.length();
  if (settings_.admission == Admission::kWhole) memory_.grow(sequence.holding, sequence.length());
  budget -= plan_chunk(sequence, budget);
  return true;
}

Hit Scheduler::find(const Sequence& sequence) const {
  if (!sequence.known || !sequence.request.reads_cache) return {};
  Hit hit = memory_.find(sequence.tokens, sequence.request.cache_salt);
  // With a window, a sequence may be longer than the cache, and its known beginning fill all of it.
  if (running_.empty() && !can_begin(sequence, hit, 0)) hit = {};
  return hit;
}

/// Positions from `first` on that a step with this budget computes of a sequence. A chunk that is not the
/// last ends where a block ends; what would be less than that waits for the next step, unless the step has
/// nothing else of prompts.
std::int64_t Scheduler::chunk_of(std::int64_t first, std::int64_t length, std::int64_t budget,
                                 bool first_of_step) const {
  std::int64_t tokens = std::min(length - first, budget);
  if (settings_.chunk_tokens > 0) tokens = std::min(tokens, settings_.chunk_tokens);
  const CacheSpec& cache = settings_.cache;
  if (first + tokens < length) {
    const std::int64_t end = (first + tokens) / cache.block_tokens * cache.block_tokens;
    if (end > first) {
      tokens = end - first;
    } else if (!first_of_step) {
      tokens = 0;
    }
  }
  if (cache.state_slots > 0 && cache.checkpoint_interval_tokens > 0 && settings_.prefix_cache) {
    const std::int64_t boundary =
        (first / cache.checkpoint_interval_tokens + 1) * cache.checkpoint_interval_tokens;
    tokens = std::min(tokens, boundary - first);
  }
  return std::max<std::int64_t>(tokens, 0);
}

std::int64_t Scheduler::blocks_to_begin(const Sequence& sequence, std::int64_t cached) const {
  const std::int64_t end = settings_.admission == Admission::kWhole
                               ? sequence.length()
                               : std::min(sequence.length(), cached + settings_.cache.block_tokens);
  return memory_.blocks_for(end) - cached / settings_.cache.block_tokens;
}

/// A block for each admitted sequence that may need one more: without it, the newly admitted would be the
/// first to be preempted.
std::int64_t Scheduler::growth_reserve() const {
  std::int64_t reserve = 0;
  for (const auto& [place, sequence] : running_) {
    const Request& request = sequence->request;
    const std::int64_t in_the_end = memory_.blocks_for(request.prompt_tokens + request.max_new_tokens);
    reserve += in_the_end > static_cast<std::int64_t>(sequence->holding.table.size()) ? 1 : 0;
  }
  return reserve;
}

bool Scheduler::can_begin(const Sequence& sequence, const Hit& hit, std::int64_t reserved_blocks) const {
  const std::int64_t cached = static_cast<std::int64_t>(hit.blocks.size()) * settings_.cache.block_tokens;
  return blocks_to_begin(sequence, cached) + reserved_blocks <= memory_.unused_beside(hit);
}

/// Returns the positions planned.
std::int64_t Scheduler::plan_chunk(Sequence& sequence, std::int64_t budget) {
  std::int64_t tokens = chunk_of(sequence.computed, sequence.length(), budget, !planned_prefill_);
  if (tokens == 0 || !make_room(sequence, sequence.computed + 1)) return 0;
  const std::int64_t blocks = static_cast<std::int64_t>(sequence.holding.table.size()) + memory_.unused();
  tokens = std::min(tokens, blocks * settings_.cache.block_tokens - sequence.computed);
  memory_.grow(sequence.holding, sequence.computed + tokens);
  add(sequence, tokens);
  planned_prefill_ = true;
  counters_.prefill_tokens += tokens;
  return tokens;
}

void Scheduler::plan_token(Sequence& sequence) {
  if (!make_room(sequence, sequence.computed + 1)) return;
  memory_.grow(sequence.holding, sequence.computed + 1);
  add(sequence, 1);
  planned_decode_ = true;
  ++counters_.decode_tokens;
}

/// Sees to it that blocks for so many positions can be had, from the last in order where need be. The last
/// itself waits for others to end.
bool Scheduler::make_room(Sequence& sequence, std::int64_t positions) {
  memory_.give_back_before(sequence.holding, sequence.computed);
  const std::int64_t needed =
      memory_.blocks_for(positions) - static_cast<std::int64_t>(sequence.holding.table.size());
  while (memory_.unused() < needed) {
    Sequence& last = *running_.rbegin()->second;
    if (last.place == sequence.place) return false;
    preempt(last);
  }
  return true;
}

void Scheduler::preempt(Sequence& sequence) {
  release(sequence);
  waiting_.emplace(sequence.place, &sequence);
  sequence.computed = 0;
  ++counters_.preemptions;
}

void Scheduler::add(Sequence& sequence, std::int64_t tokens) {
  const std::int64_t end = sequence.computed + tokens;
  plan_.segments.push_back({.id = sequence.request.id,
                            .first_position = sequence.computed,
                            .tokens = tokens,
                            .samples = end == sequence.length() && sequence.request.max_new_tokens > 0});
  plan_.block_tables.push_back(sequence.holding.table);
  if (sequence.holding.state_slot >= 0) plan_.state_slots.push_back(sequence.holding.state_slot);
  if (!sequence.known) return;
  plan_.token_ids.insert(plan_.token_ids.end(), sequence.tokens.begin() + sequence.computed,
                         sequence.tokens.begin() + end);
  memory_.publish(sequence.holding, sequence.tokens, sequence.request.cache_salt, end);
  memory_.checkpoint(sequence.holding, end, plan_.after);
}

}  // namespace sextant::batching
