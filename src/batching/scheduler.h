// What a serving rank runs next: the one scheduler of the engine and of the simulator.
//
// It has no clock, no input or output and no tensors, and decides in whole numbers: the same events at the
// same times give the same plans everywhere. One tick, in this order:
//
//   accept(events, now_us)          requests and aborts enter, between steps only
//   report()                        what this rank could do; all ranks' reports make a table
//   agree(table)   (agreement.h)    pure: may ranks prefill in this tick?
//   plan(verdict)                   the step
//   plan_report()                   all ranks' plan reports make a second table
//   settle(table)  (agreement.h)    pure: rows, padding, overlap
//   apply(settlement)               cuts the plan in two where ranks overlap
//   ... an executor runs the plan ...
//   commit(result)                  positions advance, sequences end
//
// Order. Each sequence has a place: arrival_us + priority * ageing_us, then its id. It never changes, so a
// step of priority is worth ageing_us of waiting and no more, and after that time nothing new can pass it.
// Waiting sequences are admitted strictly in this order. When blocks are short, the last in order gives all
// of its blocks back and waits again, to be computed once more later (preemption by recompute); the first in
// order never does.
//
// Progress. The first in order of all sequences is admitted first, is never preempted and finds blocks by
// preempting the others, so it advances in every tick in which its phase may run. Phases: see Phase.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "batching/agreement.h"
#include "batching/cache_memory.h"
#include "batching/request.h"
#include "batching/step_price.h"

namespace sextant::batching {

enum class Admission {
  kWhole,  ///< a prompt is admitted when there are blocks for all of it
  kChunk,  ///< when there are blocks for its first chunk
};

enum class Phase {
  /// A step prefills or decodes, never both, and prefills when it can. At most decode_every_ticks steps in a
  /// row
  /// prefill while a sequence decodes; with a price, at most as many as pass in max_step_us, and one.
  kPrefillFirst,
  /// Every step decodes all that decode and prefills with what the budget leaves; so a sequence draws a token
  /// in
  /// each step. With a price and max_step_us, as many prompt tokens as the price allows; where that is less
  /// than
  /// a block, a block each prefill_every_ticks steps.
  kMixed,
};

struct Settings {
  CacheSpec cache = {};
  std::int64_t seats = 256;         ///< sequences that are admitted together; at most step_tokens are used
  std::int64_t step_tokens = 2048;  ///< positions of a step
  std::int64_t chunk_tokens = 0;    ///< of one prompt in a step; 0: as many as the step has
  std::int64_t max_positions = 0;   ///< of a sequence; 0: as many as the cache has
  bool prefix_cache = true;
  Admission admission = Admission::kWhole;
  Phase phase = Phase::kPrefillFirst;
  std::int64_t decode_every_ticks = 32;  ///< of prefill-first; 0: no bound (ROCm/ATOM)
  std::int64_t prefill_every_ticks = 8;  ///< of mixed
  std::int64_t max_step_us = 0;  ///< time between two tokens of a sequence that a step may take; 0: any
  StepPrice price = {};
  std::int64_t ageing_us = 1'000'000;
  AgreementSettings agreement = {};  ///< delayer.step_tokens is set to step_tokens
};

/// Throws base::UserError naming the setting that cannot be.
void require_sane(const Settings& settings);

struct Counters {
  std::int64_t idle_steps = 0;
  std::int64_t prefill_steps = 0;
  std::int64_t decode_steps = 0;
  std::int64_t mixed_steps = 0;
  std::int64_t prefill_tokens = 0;  ///< computed, those of preempted sequences again
  std::int64_t decode_tokens = 0;
  std::int64_t cached_tokens = 0;  ///< taken from the prefix cache, at every admission
  std::int64_t probed_tokens = 0;  ///< of all admissions: what could have been
  std::int64_t drawn_tokens = 0;
  std::int64_t admissions = 0;
  std::int64_t preemptions = 0;
  std::int64_t refused = 0;
  std::int64_t finished = 0;  ///< by end or length
  std::int64_t aborted = 0;
  std::int64_t failed = 0;
};

class Scheduler {
 public:
  /// REQUIRES: settings that require_sane accepts.
  explicit Scheduler(const Settings& settings, HashFunction hash = chained_hash);

  /// Returns what ends at once: aborted and refused sequences, each once. An abort of what is not there is
  /// nothing. REQUIRES: the last plan was committed; now_us never falls.
  std::vector<Progress> accept(std::span<const Event> events, std::int64_t now_us);
  RankReport report() const;
  /// Valid until the next call.
  const BatchPlan& plan(const Verdict& verdict);
  PlanReport plan_report() const;
  const BatchPlan& apply(const Settlement& settlement);
  /// REQUIRES: the outcomes of the last plan, in order.
  std::vector<Progress> commit(const StepResult& result);

  const Settings& settings() const { return settings_; }
  const Counters& counters() const { return counters_; }
  const BatchPlan& current() const { return plan_; }
  std::int64_t waiting() const { return static_cast<std::int64_t>(waiting_.size()); }
  std::int64_t running() const { return static_cast<std::int64_t>(running_.size()); }
  std::int64_t seats() const { return seats_; }
  bool has_work() const { return !sequences_.empty(); }
  /// Prompt and answer of one sequence together.
  std::int64_t max_positions() const { return max_positions_; }
  const CacheMemory& memory() const { return memory_; }
  /// The first in order of those that are admitted.
  std::optional<SequenceId> first_running() const;
  /// What is wrong with the books: users of blocks, slots, who waits and who runs. Empty: nothing. For tests.
  std::string inconsistency() const;

 private:
  /// A sequence's place in the order.
  using Place = std::pair<std::int64_t, SequenceId>;
  struct Sequence {
    Request request = {};              ///< without its prompt, which `tokens` begin with
    std::vector<TokenId> tokens = {};  ///< prompt and answer; in the simulator none
    bool known = false;                ///< there are tokens
    std::int64_t drawn = 0;
    std::int64_t computed = 0;  ///< positions whose keys are in the cache
    Place place = {};
    bool prefilling = false;
    bool reported = false;
    std::int64_t cached_tokens = 0;
    Holding holding = {};

    std::int64_t length() const { return request.prompt_tokens + drawn; }
  };
  using Order = std::map<Place, Sequence*>;

  void submit(const Request& request, std::vector<Progress>& progress);
  Fault fault_of(const Request& request) const;
  void end_early(SequenceId id, Finish finish, std::vector<Progress>& progress);
  void release(Sequence& sequence);
  void erase(SequenceId id);

  Hit find(const Sequence& sequence) const;
  std::int64_t chunk_of(std::int64_t first, std::int64_t length, std::int64_t budget,
                        bool first_of_step) const;
  std::int64_t blocks_to_begin(const Sequence& sequence, std::int64_t cached) const;
  std::int64_t growth_reserve() const;
  bool can_begin(const Sequence& sequence, const Hit& hit, std::int64_t reserved_blocks) const;
  std::int64_t pending_tokens() const;
  std::int64_t decoding() const;

  std::int64_t prefill_steps_allowed() const;
  void plan_prefill_first(bool may_prefill);
  void plan_prompts(std::int64_t budget);
  void plan_mixed(bool may_prefill);
  std::int64_t prefill_budget_of_mixed(std::int64_t decoding) const;
  void plan_running(std::int64_t& prefill_budget, bool decodes, bool prefills);
  void admit(std::int64_t& budget);
  bool try_admit(Sequence& sequence, std::int64_t& budget);
  std::int64_t plan_chunk(Sequence& sequence, std::int64_t budget);
  void plan_token(Sequence& sequence);
  bool make_room(Sequence& sequence, std::int64_t positions);
  void preempt(Sequence& sequence);
  void add(Sequence& sequence, std::int64_t tokens);
  Progress take(Sequence& sequence, const Outcome& outcome);

  Settings settings_;
  std::int64_t seats_;
  std::int64_t max_positions_;
  CacheMemory memory_;
  std::unordered_map<SequenceId, Sequence> sequences_;
  Order waiting_;
  Order running_;
  BatchPlan plan_;
  bool planned_prefill_ = false;  ///< the plan has a prompt's segment
  bool planned_decode_ = false;   ///< and one of a sequence that decodes
  std::int64_t tick_ = 0;
  std::int64_t now_us_ = 0;
  std::int64_t step_us_ = 0;
  std::int64_t prefill_steps_in_row_ = 0;
  std::int64_t steps_since_prefill_ = 0;
  bool shutdown_ = false;
  Counters counters_;
};

}  // namespace sextant::batching
