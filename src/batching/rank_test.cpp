// Ranks that keep step with each other and under pressure, and records of them, again after faults that
// serving engines have had.
#include "batching/rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "batching/test_rank.h"

namespace sextant::batching {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// inference-sim/inference-sim #963, #1121: a request that failed to get blocks for ever, and one that ran as
// if preempted blocks were still there.
TEST(Pressure, FortyRequestsInACacheForTwoAllEnd) {
  std::map<std::int64_t, double> tokens_a_tick;
  for (const std::int64_t requests : {40, 160}) {
    Alone rank(settings_of(64, 2048));
    std::vector<Event> events;
    for (SequenceId id = 0; id < requests; ++id) events.emplace_back(request(id, 200, 200));
    std::int64_t ticks = 0, idle = 0;
    for (; ticks == 0 || rank.scheduler().has_work(); ++ticks) {
      idle += rank.tick(std::exchange(events, {})) == "idle" ? 1 : 0;
      ASSERT_LT(ticks, 100'000);
    }
    const Counters& counters = rank.scheduler().counters();
    EXPECT_EQ(idle, 0);
    EXPECT_EQ(counters.finished, requests);
    EXPECT_EQ(counters.drawn_tokens, requests * 200);
    EXPECT_LE(counters.preemptions, requests) << "on average less than once each";
    tokens_a_tick[requests] = static_cast<double>(counters.drawn_tokens) / static_cast<double>(ticks);
    RecordProperty(fmt::format("preemptions_of_{}", requests), std::to_string(counters.preemptions));
  }
  EXPECT_LE(tokens_a_tick[160], 1.2 * tokens_a_tick[40]);
}

Settings four_ranks(DelayPolicy policy) {
  Settings settings = settings_of(64, 128);
  settings.agreement.delayer.policy = policy;
  return settings;
}

// vllm-project/vllm #43547, PR #51984: an idle rank that leaves out a collective.
TEST(Ranks, IdleOnesKeepStepWithOneRequest) {
  for (const DelayPolicy policy : {DelayPolicy::kOff, DelayPolicy::kAnchor, DelayPolicy::kSglang}) {
    Group group(four_ranks(policy), 4);
    group.tick({{request(1, 300, 32)}});
    const ExpertTraffic traffic{.layers = 3, .hidden = 64, .experts_per_token = 2};
    std::int64_t ticks = 1;
    for (; group.has_work(); ++ticks) {
      ASSERT_LT(ticks, 2000);
      group.tick();
      const std::vector<Collective> first = collectives(group.rank(0).settlement(), traffic);
      for (Rank& rank : group.ranks()) EXPECT_EQ(collectives(rank.settlement(), traffic), first);
    }
    for (std::size_t i = 1; i < 4; ++i) {
      EXPECT_GE(group.scheduler(i).counters().idle_steps, 32);
      EXPECT_EQ(group.scheduler(i).counters().idle_steps, ticks);
    }
    EXPECT_EQ(group.scheduler(0).counters().drawn_tokens, 32);
  }
}

TEST(Ranks, AnswersOfDifferentLengthBothEnd) {
  Group group(four_ranks(DelayPolicy::kAnchor), 4);
  group.tick({{request(1, 20, 5)}, {}, {}, {request(2, 20, 200)}});
  for (int ticks = 0; group.has_work(); ++ticks) {
    ASSERT_LT(ticks, 2000);
    group.tick();
  }
  EXPECT_EQ(group.scheduler(0).counters().drawn_tokens, 5);
  EXPECT_EQ(group.scheduler(3).counters().drawn_tokens, 200);
}

TEST(Ranks, DifferentNumbersOfChunksKeepStep) {
  Group group(four_ranks(DelayPolicy::kSglang), 4);
  group.tick({{request(1, 100, 4)}, {request(2, 384, 4)}, {}, {request(3, 256, 4)}});
  for (int ticks = 0; group.has_work(); ++ticks) {
    ASSERT_LT(ticks, 2000);
    group.tick();
  }
  EXPECT_EQ(group.scheduler(1).counters().finished, 1);
}

// sgl-project/sglang PR #31835: ranks that said they were ready before they looked for blocks.
TEST(Ranks, OneWithoutBlocksOrSeatsIsNotReady) {
  Settings settings = settings_of(8, 128);
  settings.agreement.delayer = {.policy = DelayPolicy::kSglang, .max_passes = 5};
  Group group(settings, 2);
  group.tick({{request(4, 16, 20)}, {request(1, 100, 20)}});
  const Group::Tick& tick = group.tick({{request(2, 16, 4)}, {request(3, 64, 4)}});
  EXPECT_TRUE(tick.reports[0].prefillable);
  EXPECT_FALSE(tick.reports[1].prefillable);
  EXPECT_EQ(group.rank(0).verdict().reason, Reason::kHoldAlign);

  settings.cache.blocks = 64;
  settings.seats = 1;
  Group seats(settings, 1);
  seats.tick({{request(1, 100, 20)}});
  EXPECT_FALSE(seats.tick({{request(2, 16, 4)}}).reports[0].prefillable);
}

// ROCm/ATOM PR #2196: prompts counted whole although most of them is in the prefix cache.
TEST(Ranks, PendingTokensAreThoseThatWillBeComputed) {
  Settings settings = settings_of(64, 1024);
  settings.chunk_tokens = 96;
  Group group(settings, 1);
  const Request first = request(1, 80, 1);
  group.tick({{first}});
  EXPECT_EQ(group.tick({{again(2, first)}}).reports[0].pending_tokens, 16);
  EXPECT_EQ(group.tick({{request(3, 200, 1)}}).reports[0].pending_tokens, 96);
}

TEST(Ranks, ReportsSaturateAtTheBudgetAndCountWhatIsLeftOfPartialPrompts) {
  Settings settings = settings_of(256, 64);
  Group group(settings, 1);
  RankReport report = group.tick({{request(1, 100, 4), request(2, 500, 4)}}).reports[0];
  EXPECT_EQ(report.pending_tokens, 64);
  EXPECT_FALSE(report.has_partial);
  EXPECT_EQ(report.free_seats, 64);
  group.tick({{Abort{2}}});
  settings.phase = Phase::kMixed;
  Group partial(settings, 1);
  partial.tick({{request(1, 100, 4)}});
  report = partial.tick().reports[0];
  EXPECT_TRUE(report.has_partial);
  EXPECT_EQ(report.pending_tokens, 36);
  EXPECT_EQ(report.decoding, 0);
  EXPECT_EQ(report.kv_used_permille, 7 * 1000 / 256);
}

TEST(Ranks, WatermarksAndAgeCountOnlyWhereSetAndOnReadyRanks) {
  Settings settings = settings_of(20, 512);
  DelayerSettings& delayer = settings.agreement.delayer;
  const auto report_with = [&](std::int64_t waiting_tokens, std::int64_t waited_us) {
    Group group(settings, 1);
    group.tick({{request(1, 15 * 16, 16)}}, 0);  // 15 of 20 blocks, and one to grow
    return group.tick({{request(2, waiting_tokens, 1, 1)}}, 1 + waited_us).reports[0];
  };
  delayer.kv_high_permille = 750;
  EXPECT_TRUE(report_with(16, 9).kv_high);
  EXPECT_FALSE(report_with(5 * 16, 9).kv_high) << "not ready: there are 4 blocks";
  delayer.kv_high_permille = 751;
  EXPECT_FALSE(report_with(16, 9).kv_high);
  EXPECT_FALSE(report_with(16, 9).kv_low);
  delayer.kv_low_permille = 751;
  EXPECT_TRUE(report_with(16, 9).kv_low);
  EXPECT_FALSE(report_with(16, 9).queue_hot);
  delayer.max_queue_us = 10;
  EXPECT_FALSE(report_with(16, 9).queue_hot);
  EXPECT_TRUE(report_with(16, 10).queue_hot);
  EXPECT_FALSE(report_with(5 * 16, 10).queue_hot);
}

// sgl-project/sglang PR #32389: the first chunk was voted on with a capacity of nothing.
TEST(Ranks, APromptOfOneWholeChunkStartsAsSoonAsALongerOne) {
  std::vector<std::int64_t> started;
  for (const std::int64_t tokens : {64, 65}) {
    Settings settings = settings_of(64, 128);
    settings.chunk_tokens = 64;
    settings.agreement.delayer = {.policy = DelayPolicy::kSglang, .max_passes = 5};
    Group group(settings, 2);
    group.tick({{request(1, 16, 40)}, {request(2, 16, 40)}});
    std::int64_t ticks = 1;
    group.tick({{request(3, tokens, 4)}});
    while (group.scheduler(0).waiting() > 0) {
      group.tick();
      ++ticks;
    }
    started.push_back(ticks);
  }
  EXPECT_THAT(started, ElementsAre(5, 5));
}

/// A record of a small history.
std::string sample_record() {
  std::string record;
  Settings settings = settings_of(8, 32);
  settings.price.points = {{1, 10}};
  Group group(settings, 1);
  group.rank().record([&record](std::string_view line) { record += line; });
  Request salted = request(1, 40, 6);
  salted.cache_salt = "a tenant's secret";
  group.tick({{salted, request(2, 30, 6)}});
  group.tick();
  group.tick({{Abort{2}, request(3, 50, 3)}});
  group.tick({{StopText{1}}});
  while (group.has_work()) group.tick();
  return record;
}

TEST(Records, GiveTheSamePlansAgain) {
  const Replay again = replay("record", sample_record());
  EXPECT_EQ(again.different_line, 0) << again.difference;
  EXPECT_GE(again.ticks, 6);
  EXPECT_THAT(sample_record(), Not(HasSubstr("secret")));
}

TEST(Records, ADecisionThatDiffersIsFoundAndItsLineNamed) {
  std::string record = sample_record();
  const std::size_t place = record.find("\nplan 1 ");
  ASSERT_NE(place, std::string::npos);
  const std::size_t end = record.find('\n', place + 1);
  record[end - 1] = record[end - 1] == '0' ? '1' : '0';
  const Replay again = replay("record", record);
  EXPECT_EQ(again.different_line,
            1 + std::count(record.begin(), record.begin() + static_cast<std::ptrdiff_t>(place) + 1, '\n'));
  EXPECT_EQ(again.ticks, 1);
  // An answer that came out otherwise changes what is computed next.
  std::string other = sample_record();
  const std::size_t outcome = other.find("outcome 3 ") + 10;
  other[outcome] = other[outcome] == '9' ? '8' : '9';
  EXPECT_NE(replay("record", other).different_line, 0);
}

TEST(Records, ATailThatWasCutOffIsLeftOutAndDamageIsNamed) {
  const std::string record = sample_record();
  for (std::size_t size = record.size(); size > record.size() - 60; --size) {
    EXPECT_EQ(replay("record", record.substr(0, size)).different_line, 0);
  }
  const auto fault = [](const std::string& text) {
    try {
      replay("file", text);
    } catch (const base::UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(fault("something else\n"), HasSubstr("file:1"));
  const std::string begin = record.substr(0, record.find("accept"));
  EXPECT_THAT(fault(begin + "accept x\n"), HasSubstr("file:3"));
  EXPECT_THAT(fault(begin + "nonsense\n"), HasSubstr("'nonsense'"));
  EXPECT_THAT(fault(begin + "commit 1\n"), HasSubstr("does not follow"));
  EXPECT_THAT(fault(begin + "accept -1\n"), HasSubstr("backwards"));
  EXPECT_THAT(fault(begin + "accept 1 2\n"), HasSubstr("more words"));
  EXPECT_THAT(fault(begin + "accept 1\ntable 0\n"), HasSubstr("no row"));
  EXPECT_THAT(fault(begin + "accept 1\ntable 99999999999\n"), HasSubstr("shorter"));
}

TEST(Records, NoDamageGetsPastTheReader) {
  const std::string record = sample_record();
  std::mt19937 engine(1);
  std::int64_t refused = 0, different = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string damaged = record;
    for (std::size_t changes = 1 + engine() % 3; changes > 0; --changes) {
      const std::size_t place = engine() % damaged.size();
      switch (engine() % 4) {
        case 0:
          damaged[place] = static_cast<char>('0' + engine() % 10);
          break;
        case 1:
          damaged[place] = " \n-9ax"[engine() % 6];
          break;
        case 2:
          damaged.erase(place, 1 + engine() % 40);
          break;
        default:
          damaged.insert(place, damaged.substr(engine() % damaged.size(), engine() % 40));
      }
    }
    try {
      different += replay("file", damaged).different_line != 0 ? 1 : 0;
    } catch (const base::UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(different, 100);
}

TEST(SettingsOfAScheduler, WhatCannotBeIsNamed) {
  const auto fault = [](const std::function<void(Settings&)>& change) {
    Settings settings = settings_of(8, 32);
    change(settings);
    try {
      require_sane(settings);
    } catch (const base::UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(fault([](Settings&) {}), "");
  EXPECT_THAT(fault([](Settings& s) { s.seats = 0; }), HasSubstr("--max-num-seqs"));
  EXPECT_THAT(fault([](Settings& s) { s.step_tokens = 0; }), HasSubstr("--max-num-batched-tokens"));
  EXPECT_THAT(fault([](Settings& s) { s.cache.blocks = 0; }), HasSubstr("--kv-cache-bytes"));
  EXPECT_THAT(fault([](Settings& s) { s.cache.block_tokens = 0; }), HasSubstr("--block-tokens"));
  EXPECT_THAT(fault([](Settings& s) { s.cache.checkpoint_interval_tokens = 17; }), HasSubstr("multiple"));
}

}  // namespace
}  // namespace sextant::batching
