// Tens of thousands of random histories: random settings, requests, aborts and times on one to four ranks,
// run to their ends. Every tick is held against what must hold whatever happens:
//
//   - every place of the cache that a row reads holds what that sequence put or found there (PlaceChecker),
//   each
//     block has as many users as tables that list it, and nothing is left when all have ended;
//   - budget and seats are kept, tokens are covered once, cut or not, by halves as large as was agreed;
//   - all ranks come to the same verdict and the same settlement;
//   - every sequence ends exactly once, with the tokens it was to get;
//   - nobody starves. The first in order of those that run advances at least once in F ticks, where F follows
//     from the policies (kF below), and the last tick comes before F * (positions of all, times the largest
//     number of sequences that can pass one): docs/design/batching.md has the proof;
//   - a record of each rank, read back, gives the same plans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "batching/test_group.h"

namespace sextant::batching {
namespace {

class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  std::int64_t upto(std::int64_t most) {
    return static_cast<std::int64_t>(engine_() % (static_cast<std::uint64_t>(most) + 1));
  }
  std::int64_t between(std::int64_t least, std::int64_t most) { return least + upto(most - least); }
  bool one_in(std::int64_t n) { return upto(n - 1) == 0; }
  template <typename T>
  T any_of(std::initializer_list<T> values) {
    return values.begin()[upto(static_cast<std::int64_t>(values.size()) - 1)];
  }

 private:
  std::mt19937 engine_;
};

void choose_delayer(Dice& dice, DelayerSettings& delayer) {
  delayer.policy = dice.any_of({DelayPolicy::kOff, DelayPolicy::kAnchor, DelayPolicy::kSglang});
  delayer.target_fill_permille = dice.between(1, 1000);
  delayer.ttft_max_ticks = dice.between(1, 12);
  delayer.partial_max_ticks = dice.between(1, 12);
  delayer.stall_ticks = dice.between(1, 4);
  delayer.kv_high_permille = dice.between(300, 1001);
  delayer.kv_low_permille = dice.one_in(2) ? 0 : dice.between(0, 500);
  delayer.max_queue_us = dice.one_in(2) ? 0 : dice.between(1, 40);
  delayer.max_passes = dice.between(1, 8);
}

Settings random_settings(Dice& dice) {
  Settings settings;
  CacheSpec& cache = settings.cache;
  cache.block_tokens = dice.any_of({1, 2, 4, 16});
  cache.blocks = dice.between(4, 24);
  if (dice.one_in(4)) cache.window_tokens = dice.between(1, 20);
  if (dice.one_in(4)) {
    cache.state_slots = dice.between(1, 6);
    cache.checkpoint_interval_tokens = cache.block_tokens * dice.between(0, 3);
    cache.successor_tokens = dice.upto(5);
  }
  settings.seats = dice.between(1, 6);
  settings.step_tokens = dice.between(1, 40);
  settings.chunk_tokens = dice.one_in(2) ? 0 : dice.between(1, 20);
  settings.max_positions = dice.one_in(2) ? 0 : dice.between(8, 60);
  settings.prefix_cache = !dice.one_in(5);
  settings.admission = dice.any_of({Admission::kWhole, Admission::kChunk});
  settings.phase = dice.any_of({Phase::kPrefillFirst, Phase::kMixed});
  settings.decode_every_ticks = dice.between(1, 5);
  settings.prefill_every_ticks = dice.between(1, 5);
  settings.ageing_us = dice.between(1, 20);
  if (dice.one_in(3)) {
    settings.max_step_us = dice.between(1, 60);
    settings.price.points = {{1, dice.between(1, 5)}, {10, dice.between(5, 30)}, {40, dice.between(30, 90)}};
  }
  choose_delayer(dice, settings.agreement.delayer);
  OverlapSettings& overlap = settings.agreement.overlap;
  overlap.mode = dice.any_of({OverlapMode::kOff, OverlapMode::kPrefill, OverlapMode::kAll});
  overlap.policy =
      dice.any_of({SplitPolicy::kTokenMidpoint, SplitPolicy::kRequestBoundary, SplitPolicy::kBalanced});
  overlap.min_prefill_tokens = dice.between(1, 20);
  return settings;
}

/// Ticks within which the first in order of a rank's admitted sequences advances.
std::int64_t ticks_to_advance(const Settings& settings) {
  const DelayerSettings delayer = clamped(settings.agreement.delayer);
  std::int64_t held = 0;
  if (delayer.policy == DelayPolicy::kAnchor) held = delayer.ttft_max_ticks;
  if (delayer.policy == DelayPolicy::kSglang) held = delayer.max_passes - 1;
  const bool mixed = settings.phase == Phase::kMixed;
  // Mixed with a price: fired ticks without a block to spare, each after its own hold.
  const std::int64_t passed_over = mixed ? settings.prefill_every_ticks : settings.decode_every_ticks + 1;
  return (held + 1) * passed_over;
}

bool splits_cover(const BatchPlan& uncut, const BatchPlan& plan) {
  if (tokens_of(uncut) != tokens_of(plan) || uncut.token_ids != plan.token_ids) return false;
  std::vector<Segment> joined;
  for (const Segment& segment : plan.segments) {
    if (!joined.empty() && joined.back().id == segment.id) {
      if (joined.back().first_position + joined.back().tokens != segment.first_position) return false;
      joined.back().tokens += segment.tokens;
      joined.back().samples = segment.samples;
    } else {
      joined.push_back(segment);
    }
  }
  return joined == uncut.segments;
}

/// All beginnings have one number: only what is compared tells them apart.
std::uint64_t one_hash(std::uint64_t, std::span<const TokenId>) { return 1; }

/// What histories have gone through, so that none of it is held true for want of cases.
struct Seen {
  std::int64_t ticks = 0;
  std::int64_t preemptions = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t held_ticks = 0;
  std::int64_t overlapped_ticks = 0;
  std::int64_t mixed_steps = 0;
  std::int64_t aborted = 0;
  std::int64_t state_copies = 0;
  std::int64_t given_back = 0;  ///< blocks behind a window, each once a step
};

class History {
 public:
  History(unsigned seed, bool recorded)
      : dice_(seed),
        settings_(random_settings(dice_)),
        group_(settings_, static_cast<std::size_t>(dice_.between(1, 4)),
               dice_.one_in(5) ? one_hash : chained_hash),
        recorded_(recorded),
        records_(group_.ranks().size()),
        hashes_(group_.ranks().size()),
        overdue_(group_.ranks().size()) {
    const std::int64_t alphabet = dice_.between(1, 5);
    group_.draw = [alphabet](SequenceId id, std::int64_t position) {
      return static_cast<TokenId>(
          mix(static_cast<std::uint64_t>(id / 2), static_cast<std::uint64_t>(position)) %
          static_cast<std::uint64_t>(alphabet));
    };
    alphabet_ = alphabet;
    requests_left_ = dice_.between(1, 12);
    arrival_rate_ = dice_.between(1, 4);
    longest_answer_ = dice_.any_of({2, 12, 30});
    for (std::size_t i = 0; recorded && i < records_.size(); ++i) {
      group_.rank(i).record([this, i](std::string_view line) { records_[i] += line; });
    }
  }

  /// What went wrong; empty: nothing.
  std::string run() {
    std::int64_t now_us = 0;
    for (std::int64_t ticks = 0, last_arrival = 0; requests_left_ > 0 || group_.has_work(); ++ticks) {
      if (requests_left_ > 0) last_arrival = ticks;
      const auto sequences = static_cast<std::int64_t>(expected_.size());
      if (ticks - last_arrival > ticks_to_advance(settings_) * sequences * positions_ + 2) {
        return "it takes longer than it may";
      }
      now_us += dice_.upto(3);
      const std::string fault = check(group_.tick(events(now_us), now_us));
      if (!fault.empty()) return fmt::format("tick {}: {}", ticks, fault);
    }
    return check_end();
  }
  void add_to(Seen& seen) {
    seen.ticks += group_.scheduler().current().tick;
    seen.state_copies += seen_.state_copies;
    seen.given_back += seen_.given_back;
    for (const Rank& rank : group_.ranks()) {
      const Counters& counters = rank.scheduler().counters();
      seen.preemptions += counters.preemptions;
      seen.cached_tokens += counters.cached_tokens;
      seen.mixed_steps += counters.mixed_steps;
      seen.aborted += counters.aborted;
      seen.held_ticks += rank.counters().held_ticks;
      seen.overlapped_ticks += rank.counters().vetoes[0];
    }
  }

 private:
  struct Expected {
    std::size_t rank = 0;
    Request request = {};
    std::int64_t tokens = 0;
    bool ended = false;
    bool aborted = false;
  };

  std::vector<std::vector<Event>> events(std::int64_t now_us) {
    std::vector<std::vector<Event>> all(group_.ranks().size());
    while (requests_left_ > 0 && dice_.one_in(arrival_rate_)) {
      const auto rank = static_cast<std::size_t>(dice_.upto(static_cast<std::int64_t>(all.size()) - 1));
      all[rank].emplace_back(request(now_us));
      expected_[next_id_ - 1].rank = rank;
      if (dice_.one_in(20)) {  // in the same breath, and once more
        expected_[next_id_ - 1].aborted = true;
        all[rank].emplace_back(Abort{next_id_ - 1});
        all[rank].emplace_back(Abort{next_id_ - 1});
      }
    }
    if (next_id_ > 0 && dice_.one_in(12)) {
      const SequenceId id = dice_.upto(next_id_ - 1);
      const std::size_t rank = expected_[id].rank;
      expected_[id].aborted = true;
      if (dice_.one_in(3)) {
        all[rank].emplace_back(StopText{id});
      } else {
        all[rank].emplace_back(Abort{id});
      }
    }
    return all;
  }

  Request request(std::int64_t now_us) {
    --requests_left_;
    Request request{.id = next_id_++, .arrival_us = now_us};
    const std::int64_t tokens = dice_.between(0, 40);
    // Beginnings in common: tokens are a function of the position, but for one place.
    const std::int64_t place = dice_.upto(60);
    for (std::int64_t i = 0; i < tokens; ++i) {
      request.prompt.push_back(static_cast<TokenId>(i == place ? alphabet_ : i % 3));
    }
    request.prompt_tokens = tokens;
    request.max_new_tokens = dice_.upto(longest_answer_);
    if (dice_.one_in(2)) request.end_ids = {static_cast<TokenId>(dice_.upto(5))};
    request.priority = dice_.one_in(3) ? dice_.between(-2, 2) : 0;
    if (dice_.one_in(4)) request.cache_salt = "b";
    request.reads_cache = !dice_.one_in(6);
    expected_[request.id] = {.request = request};
    positions_ += request.prompt_tokens + request.max_new_tokens + 1;
    return request;
  }

  std::string check(const Group::Tick& tick) {
    for (std::size_t i = 0; i < tick.plans.size(); ++i) {
      const std::string fault = check_rank(i, tick);
      if (!fault.empty()) return fmt::format("rank {}: {}", i, fault);
    }
    return {};
  }

  std::string check_rank(std::size_t i, const Group::Tick& tick) {
    const Rank& rank = group_.rank(i);
    const BatchPlan& plan = tick.plans[i];
    hashes_[i] = mix(hashes_[i], hash_of(plan));
    for (const CacheOperation& each : plan.before)
      seen_.state_copies += each.kind == CacheOperation::Kind::kCopy;
    for (const auto& table : plan.block_tables) seen_.given_back += std::ranges::count(table, -1);
    if (!group_.checker(i).fault.empty()) return group_.checker(i).fault;
    if (const std::string fault = rank.scheduler().inconsistency(); !fault.empty()) return fault;
    if (tokens_of(plan) > settings_.step_tokens) return "the budget is exceeded";
    if (settings_.phase == Phase::kPrefillFirst && plan.kind == StepKind::kMixed) return "phases are mixed";
    if (!splits_cover(tick.uncut[i], plan)) return "a split loses tokens";
    if (!(rank.verdict() == group_.rank(0).verdict())) return "verdicts differ";
    if (!(rank.settlement() == group_.rank(0).settlement())) return "settlements differ";
    if (!halves_agree(i, plan, rank.settlement())) return "halves are not as agreed";
    for (const Progress& each : tick.progress[i]) {
      if (const std::string fault = take(each); !fault.empty()) return fault;
    }
    return check_advance(i, tick);
  }

  bool halves_agree(std::size_t i, const BatchPlan& plan, const Settlement& settlement) const {
    if (settlement.overlap != (plan.split.segments > 0)) return false;
    std::int64_t first = 0;
    const auto segments = static_cast<std::size_t>(plan.split.segments);
    for (std::size_t s = 0; s < (settlement.overlap ? segments : plan.segments.size()); ++s) {
      first += plan.segments[s].tokens;
    }
    const std::int64_t second = tokens_of(plan) - first;
    if (settlement.uniform) {
      return first <= settlement.rows0[i] && (!settlement.overlap || second <= settlement.rows1[i]);
    }
    return first == settlement.rows0[i] && (!settlement.overlap || second == settlement.rows1[i]);
  }

  std::string take(const Progress& progress) {
    Expected& expected = expected_.at(progress.id);
    if (expected.ended) return fmt::format("sequence {} goes on after its end", progress.id);
    expected.tokens += progress.has_token ? 1 : 0;
    expected.ended = progress.finish != Finish::kNo;
    if (progress.finish == Finish::kError) {
      return progress.fault == Fault::kEmpty || progress.fault == Fault::kTooLong ? ""
                                                                                  : "an unexpected fault";
    }
    if (progress.finish == Finish::kAborted) return expected.aborted ? "" : "aborted by nobody";
    const Request& request = expected.request;
    const std::int64_t most =
        std::min(request.max_new_tokens, group_.scheduler().max_positions() - request.prompt_tokens);
    const bool drew_end =
        progress.has_token && std::ranges::find(request.end_ids, progress.token) != request.end_ids.end();
    if (progress.finish == Finish::kStop) return drew_end || expected.aborted ? "" : "stopped by nothing";
    if (drew_end) return "an end id did not end";
    if ((progress.finish == Finish::kLength) != (expected.tokens == most)) return "another length";
    return {};
  }

  /// The first in order of those that run: it advances, or it is another one, within the bound.
  std::string check_advance(std::size_t i, const Group::Tick& tick) {
    Overdue& overdue = overdue_[i];
    const std::optional<SequenceId> first = group_.scheduler(i).first_running();
    const bool advanced = std::ranges::any_of(tick.plans[i].segments,
                                              [&](const Segment& each) { return each.id == overdue.id; });
    if (!first || first != overdue.id || advanced) overdue.ticks = 0;
    overdue.id = first.value_or(-1);
    if (first && ++overdue.ticks > ticks_to_advance(settings_) + 1) return "the first in order starves";
    const bool held = !group_.rank(i).verdict().prefill;
    const bool idle = tick.plans[i].segments.empty();
    if (group_.scheduler(i).has_work() && idle && !held) return "it idles with work";
    return {};
  }

  std::string check_end() {
    for (const auto& [id, expected] : expected_) {
      if (!expected.ended) return fmt::format("sequence {} never ended", id);
    }
    for (std::size_t i = 0; i < records_.size(); ++i) {
      const CacheMemory& memory = group_.scheduler(i).memory();
      if (memory.used() != 0) return "blocks are left";
      if (memory.states().free_slots() + memory.states().checkpoints() != memory.states().slots()) {
        return "slots are left";
      }
      if (!recorded_) continue;
      const Replay again = replay("record", records_[i]);
      if (again.different_line != 0)
        return fmt::format("record line {}: {}", again.different_line, again.difference);
      if (again.hash != hashes_[i]) return "the record gives other plans";
    }
    return {};
  }

  struct Overdue {
    SequenceId id = -1;
    std::int64_t ticks = 0;
  };
  Dice dice_;
  Settings settings_;
  Group group_;
  bool recorded_;
  std::vector<std::string> records_;
  std::vector<std::uint64_t> hashes_;
  std::vector<Overdue> overdue_;
  std::map<SequenceId, Expected> expected_;
  std::int64_t requests_left_ = 0;
  std::int64_t positions_ = 0;  ///< that all sequences may have
  Seen seen_;
  std::int64_t alphabet_ = 1;
  std::int64_t arrival_rate_ = 1;  ///< one in so many ticks has another request
  std::int64_t longest_answer_ = 1;
  SequenceId next_id_ = 0;
};

TEST(Histories, TwentyFiveThousandRandomOnesKeepEveryPromise) {
  Seen seen;
  for (unsigned seed = 0; seed < 25'000; ++seed) {
    History history(seed, seed % 4 == 0);
    ASSERT_EQ(history.run(), "") << "seed " << seed;
    history.add_to(seen);
  }
  EXPECT_GT(seen.ticks, 25'000 * 20);
  EXPECT_GT(seen.preemptions, 3'000);
  EXPECT_GT(seen.cached_tokens, 100'000);
  EXPECT_GT(seen.held_ticks, 100'000);
  EXPECT_GT(seen.overlapped_ticks, 10'000);
  EXPECT_GT(seen.mixed_steps, 10'000);
  EXPECT_GT(seen.aborted, 10'000);
  EXPECT_GT(seen.state_copies, 500);
  EXPECT_GT(seen.given_back, 10'000);
}

}  // namespace
}  // namespace sextant::batching
