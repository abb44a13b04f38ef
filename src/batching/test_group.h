// Ranks in one thread, and an executor that knows what every place of the cache must hold. For tests.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "batching/hash.h"
#include "batching/rank.h"

namespace sextant::batching {

/// Writes, where keys would stand, a number for all tokens up to there, and reads back every place that a row
/// would attend to. A block shared wrongly, reused too early or never written shows as a wrong number.
class PlaceChecker {
 public:
  explicit PlaceChecker(const CacheSpec& spec)
      : spec_(spec),
        places_(static_cast<std::size_t>(spec.blocks * spec.block_tokens)),
        states_(static_cast<std::size_t>(spec.state_slots)) {}

  /// A number for each beginning of the sequence.
  struct Sequence {
    std::uint64_t salt = 0;
    std::vector<TokenId> tokens = {};
    std::vector<std::uint64_t> numbers = {};
    void extend() {
      while (numbers.size() < tokens.size()) {
        const std::uint64_t before = numbers.empty() ? salt : numbers.back();
        numbers.push_back(mix(before, static_cast<std::uint64_t>(tokens[numbers.size()])));
      }
    }
  };

  void begin(const Request& request) {
    Sequence& sequence = sequences_[request.id];
    sequence = {.salt = std::hash<std::string>()(request.cache_salt), .tokens = request.prompt};
    sequence.extend();
  }
  const std::vector<TokenId>& tokens(SequenceId id) const { return sequences_.at(id).tokens; }

  /// `draw` gives the token of a sequence at a position. What is wrong goes to `fault`.
  StepResult run(const BatchPlan& plan, const std::function<TokenId(SequenceId, std::int64_t)>& draw) {
    StepResult result{.tick = plan.tick};
    for (const CacheOperation& each : plan.before) operate(each);
    std::size_t first_token = 0;
    for (std::size_t s = 0; s < plan.segments.size(); ++s) {
      const Segment& segment = plan.segments[s];
      Sequence& sequence = sequences_.at(segment.id);
      check_tokens(plan, first_token, segment, sequence);
      first_token += static_cast<std::size_t>(segment.tokens);
      if (!plan.state_slots.empty()) advance_state(plan.state_slots[s], segment, sequence);
      for (std::int64_t i = 0; i < segment.tokens; ++i) {
        const std::int64_t position = segment.first_position + i;
        place(plan.block_tables[s], position) = sequence.numbers[static_cast<std::size_t>(position)];
      }
      read(plan.block_tables[s], segment, sequence);
      if (!segment.samples) continue;
      const TokenId token = draw(segment.id, segment.first_position + segment.tokens);
      sequence.tokens.push_back(token);
      sequence.extend();
      result.outcomes.push_back({.id = segment.id, .token = token});
    }
    for (const CacheOperation& each : plan.after) operate(each);
    return result;
  }

  std::string fault;

 private:
  std::uint64_t& place(const std::vector<std::int32_t>& table, std::int64_t position) {
    const std::int32_t block = table.at(static_cast<std::size_t>(position / spec_.block_tokens));
    return places_.at(static_cast<std::size_t>(block * spec_.block_tokens + position % spec_.block_tokens));
  }

  void check_tokens(const BatchPlan& plan, std::size_t first, const Segment& segment,
                    const Sequence& sequence) {
    for (std::int64_t i = 0; i < segment.tokens; ++i) {
      const auto position = static_cast<std::size_t>(segment.first_position + i);
      if (plan.token_ids.at(first + static_cast<std::size_t>(i)) != sequence.tokens.at(position)) {
        fault = fmt::format("tick {}: another token at {} of {}", plan.tick, position, segment.id);
      }
    }
  }

  void read(const std::vector<std::int32_t>& table, const Segment& segment, const Sequence& sequence) {
    const std::int64_t window = spec_.window_tokens;
    const std::int64_t first =
        window > 0 ? std::max<std::int64_t>(0, segment.first_position - window + 1) : 0;
    for (std::int64_t p = first; p < segment.first_position + segment.tokens; ++p) {
      if (place(table, p) == sequence.numbers[static_cast<std::size_t>(p)]) continue;
      fault = fmt::format("sequence {} reads other keys at {}", segment.id, p);
    }
  }

  void operate(const CacheOperation& operation) {
    std::uint64_t& to = states_.at(static_cast<std::size_t>(operation.to));
    to = operation.kind == CacheOperation::Kind::kClear
             ? 0
             : states_.at(static_cast<std::size_t>(operation.from));
  }

  void advance_state(std::int32_t slot, const Segment& segment, const Sequence& sequence) {
    std::uint64_t& state = states_.at(static_cast<std::size_t>(slot));
    const auto first = static_cast<std::size_t>(segment.first_position);
    if (state != (first == 0 ? 0 : sequence.numbers[first - 1])) {
      fault = fmt::format("sequence {} goes on at {} from another state", segment.id, first);
    }
    state = sequence.numbers[first + static_cast<std::size_t>(segment.tokens) - 1];
  }

  CacheSpec spec_;
  std::vector<std::uint64_t> places_;
  std::vector<std::uint64_t> states_;
  std::map<SequenceId, Sequence> sequences_;
};

/// N ranks that exchange their tables. Tokens are drawn by `draw`.
class Group {
 public:
  Group(const Settings& settings, std::size_t ranks, HashFunction hash = chained_hash) {
    for (std::size_t i = 0; i < ranks; ++i) {
      ranks_.emplace_back(settings, i, hash);
      checkers_.emplace_back(settings.cache);
    }
  }

  struct Tick {
    std::vector<RankReport> reports;
    std::vector<PlanReport> planned;
    std::vector<BatchPlan> uncut;  ///< before halves were cut
    std::vector<BatchPlan> plans;
    std::vector<std::vector<Progress>> progress;
  };

  /// events[i] enter rank i.
  const Tick& tick(const std::vector<std::vector<Event>>& events = {}, std::int64_t now_us = -1) {
    now_us_ = now_us < 0 ? now_us_ + 1 : now_us;
    last_ = {};
    last_.progress.resize(ranks_.size());
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const std::vector<Event> own = i < events.size() ? events[i] : std::vector<Event>();
      last_.progress[i] = ranks_[i].accept(own, now_us_);
      for (const Event& event : own) {
        const auto* request = std::get_if<Request>(&event);
        if (request != nullptr && !refused(last_.progress[i], request->id)) checkers_[i].begin(*request);
      }
      last_.reports.push_back(ranks_[i].report());
    }
    for (Rank& rank : ranks_) {
      rank.plan(last_.reports);
      last_.planned.push_back(rank.plan_report());
      last_.uncut.push_back(rank.scheduler().current());
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      last_.plans.push_back(ranks_[i].settle(last_.planned));
      const StepResult result = checkers_[i].run(last_.plans[i], draw);
      for (const Progress& each : ranks_[i].commit(result)) last_.progress[i].push_back(each);
    }
    return last_;
  }

  bool has_work() const {
    return std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.scheduler().has_work(); });
  }
  std::vector<Rank>& ranks() { return ranks_; }
  Rank& rank(std::size_t i = 0) { return ranks_[i]; }
  const Scheduler& scheduler(std::size_t i = 0) const { return ranks_[i].scheduler(); }
  PlaceChecker& checker(std::size_t i = 0) { return checkers_[i]; }
  std::int64_t now_us() const { return now_us_; }

  std::function<TokenId(SequenceId, std::int64_t)> draw = [](SequenceId id, std::int64_t position) {
    return static_cast<TokenId>((id * 7 + position) % 1000);
  };

 private:
  static bool refused(const std::vector<Progress>& progress, SequenceId id) {
    return std::ranges::any_of(
        progress, [id](const Progress& each) { return each.id == id && each.finish == Finish::kError; });
  }

  std::vector<Rank> ranks_;
  std::vector<PlaceChecker> checkers_;
  Tick last_;
  std::int64_t now_us_ = 0;
};

}  // namespace sextant::batching
