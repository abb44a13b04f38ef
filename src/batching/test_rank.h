// One rank, tick by tick, with plans as text. For tests.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "batching/test_group.h"

namespace sextant::batching {

inline Request request(SequenceId id, std::int64_t prompt_tokens, std::int64_t new_tokens,
                       std::int64_t arrival_us = 0) {
  Request request{
      .id = id, .prompt_tokens = prompt_tokens, .max_new_tokens = new_tokens, .arrival_us = arrival_us};
  for (std::int64_t i = 0; i < prompt_tokens; ++i) {
    request.prompt.push_back(static_cast<TokenId>(id * 1000 + i));
  }
  return request;
}

/// Another sequence with the prompt of `of`.
inline Request again(SequenceId id, const Request& of) {
  Request request = of;
  request.id = id;
  return request;
}

inline Settings settings_of(std::int64_t blocks, std::int64_t step_tokens, std::int64_t block_tokens = 16) {
  return {.cache = {.block_tokens = block_tokens, .blocks = blocks}, .step_tokens = step_tokens};
}

/// "prefill 1@0+32 2@0+10!": kind, then for each segment id, first position, tokens, and ! where it samples.
inline std::string text_of(const BatchPlan& plan) {
  constexpr const char* kKinds[] = {"idle", "prefill", "decode", "mixed"};
  std::string text = kKinds[static_cast<int>(plan.kind)];
  for (const Segment& each : plan.segments) {
    text += fmt::format(" {}@{}+{}{}", each.id, each.first_position, each.tokens, each.samples ? "!" : "");
  }
  return text;
}

/// One rank, tick by tick.
class Alone {
 public:
  explicit Alone(const Settings& settings, HashFunction hash = chained_hash) : group_(settings, 1, hash) {}

  std::string tick(const std::vector<Event>& events = {}, std::int64_t now_us = -1) {
    const Group::Tick& tick = group_.tick({events}, now_us);
    progress_ = tick.progress[0];
    EXPECT_EQ(group_.checker().fault, "");
    EXPECT_EQ(scheduler().inconsistency(), "");
    return text_of(tick.plans[0]);
  }
  std::vector<std::string> ticks(std::int64_t count) {
    std::vector<std::string> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(tick());
    return all;
  }
  /// Ticks until nothing is left.
  std::int64_t finish() {
    std::int64_t ticks = 0;
    for (; scheduler().has_work() && ticks < 100'000; ++ticks) {
      tick();
      for (const Progress& each : progress_) {
        if (each.first) cached_[each.id] = each.cached_tokens;
      }
    }
    return ticks;
  }
  std::int64_t cached(SequenceId id) { return cached_.at(id); }

  const Scheduler& scheduler() const { return group_.scheduler(); }
  const std::vector<Progress>& progress() const { return progress_; }
  Group& group() { return group_; }

 private:
  Group group_;
  std::vector<Progress> progress_;
  std::map<SequenceId, std::int64_t> cached_;
};

}  // namespace sextant::batching
