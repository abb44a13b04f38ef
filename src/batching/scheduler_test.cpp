// What a scheduler plans for histories small enough to be checked by hand, and what became of known faults of
// serving engines.
#include "batching/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "batching/test_group.h"

namespace sextant::batching {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Request request(SequenceId id, std::int64_t prompt_tokens, std::int64_t new_tokens,
                std::int64_t arrival_us = 0) {
  Request request{
      .id = id, .prompt_tokens = prompt_tokens, .max_new_tokens = new_tokens, .arrival_us = arrival_us};
  for (std::int64_t i = 0; i < prompt_tokens; ++i) {
    request.prompt.push_back(static_cast<TokenId>(id * 1000 + i));
  }
  return request;
}

/// Another sequence with the prompt of `of`.
Request again(SequenceId id, const Request& of) {
  Request request = of;
  request.id = id;
  return request;
}

Settings settings_of(std::int64_t blocks, std::int64_t step_tokens, std::int64_t block_tokens = 16) {
  return {.cache = {.block_tokens = block_tokens, .blocks = blocks}, .step_tokens = step_tokens};
}

/// "prefill 1@0+32 2@0+10!": kind, then for each segment id, first position, tokens, and ! where it samples.
std::string text_of(const BatchPlan& plan) {
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

TEST(Plans, PrefillFirstNeverMixes) {
  Alone rank(settings_of(64, 32));
  EXPECT_EQ(rank.tick({request(1, 40, 3), request(2, 10, 2)}), "prefill 1@0+32");
  EXPECT_EQ(rank.tick(), "prefill 1@32+8! 2@0+10!");
  EXPECT_EQ(rank.tick(), "decode 1@40+1! 2@10+1!");
  EXPECT_EQ(rank.tick({request(3, 5, 1)}), "prefill 3@0+5!");
  EXPECT_EQ(rank.tick(), "decode 1@41+1!");
  EXPECT_EQ(rank.tick(), "idle");
}

TEST(Plans, MixedDecodesInEveryStep) {
  Settings settings = settings_of(64, 32);
  settings.phase = Phase::kMixed;
  Alone rank(settings);
  EXPECT_EQ(rank.tick({request(1, 10, 4)}), "prefill 1@0+10!");
  // 31 positions are left beside the token of 1; a chunk that is not the last ends where a block ends.
  EXPECT_EQ(rank.tick({request(2, 40, 2)}), "mixed 1@10+1! 2@0+16");
  EXPECT_EQ(rank.tick(), "mixed 1@11+1! 2@16+24!");
  EXPECT_EQ(rank.tick(), "decode 1@12+1! 2@40+1!");
}

TEST(Plans, AChunkEndsWhereABlockEndsAndSliversWait) {
  Settings settings = settings_of(64, 40);
  settings.chunk_tokens = 36;
  Alone rank(settings);
  // 36 is cut to 32; of the 8 positions left, nothing of the second prompt ends a block.
  EXPECT_EQ(rank.tick({request(1, 100, 1), request(2, 100, 1)}), "prefill 1@0+32");
  EXPECT_EQ(rank.tick(), "prefill 1@32+32");
  EXPECT_EQ(rank.tick(), "prefill 1@64+36!");  // the last: all that is left
  EXPECT_EQ(rank.tick({request(3, 8, 1)}), "prefill 2@0+32 3@0+8!");
}

TEST(Plans, WholeAdmissionWaitsForBlocksOfAllThePromptAndChunkForTheFirst) {
  // 8 blocks; the first takes 5 and may grow to 6, the second needs 4.
  Settings settings = settings_of(8, 32);
  Alone whole(settings);
  EXPECT_THAT(whole.tick({request(1, 80, 10), request(2, 64, 2)}), "prefill 1@0+32");
  EXPECT_THAT(whole.ticks(2), ElementsAre("prefill 1@32+32", "prefill 1@64+16!"));
  EXPECT_EQ(whole.tick(), "decode 1@80+1!");
  settings.admission = Admission::kChunk;
  Alone chunk(settings);
  chunk.tick({request(1, 80, 10), request(2, 64, 2)});
  EXPECT_THAT(chunk.ticks(2), ElementsAre("prefill 1@32+32", "prefill 1@64+16! 2@0+16"));
}

TEST(Plans, TheLastInOrderIsPreemptedAndComputedAgain) {
  // Blocks of 4, 4 of them. Both prompts fill one block and may grow to 3.
  Settings settings = settings_of(4, 16, 4);
  settings.prefix_cache = false;
  Alone rank(settings);
  EXPECT_EQ(rank.tick({request(1, 4, 9), request(2, 4, 6)}), "prefill 1@0+4! 2@0+4!");
  EXPECT_EQ(rank.tick(), "decode 1@4+1! 2@4+1!");
  EXPECT_THAT(rank.ticks(3),
              ElementsAre("decode 1@5+1! 2@5+1!", "decode 1@6+1! 2@6+1!", "decode 1@7+1! 2@7+1!"));
  // 1 needs a third block: 2, which came later, gives both of its own back.
  EXPECT_EQ(rank.tick(), "decode 1@8+1!");
  EXPECT_EQ(rank.scheduler().counters().preemptions, 1);
  EXPECT_THAT(rank.ticks(2), ElementsAre("decode 1@9+1!", "decode 1@10+1!"));
  // 1 has drawn its ninth token at 12 with the key of 11; then 2 has its prompt and 5 tokens computed anew.
  EXPECT_EQ(rank.tick(), "decode 1@11+1!");
  EXPECT_EQ(rank.tick(), "prefill 2@0+9!");
  EXPECT_EQ(rank.tick(), "idle");
}

TEST(Plans, APreemptedSequenceFindsWhatIsStillThere) {
  Settings settings = settings_of(4, 16, 4);
  Alone rank(settings);
  rank.tick({request(1, 4, 9), request(2, 4, 6)});
  rank.ticks(8);
  // The block with its first 4 positions was taken last of all and is still there.
  EXPECT_EQ(rank.tick(), "prefill 2@4+5!");
}

TEST(Plans, AStepOfPriorityIsWorthSoMuchWaiting) {
  Settings settings = settings_of(64, 64);
  settings.seats = 1;
  settings.ageing_us = 100;
  Alone rank(settings);
  const auto with_priority = [](Request request, std::int64_t priority) {
    request.priority = priority;
    return request;
  };
  rank.tick({request(1, 8, 2, 0)}, 0);
  rank.tick({request(2, 8, 1, 0), with_priority(request(3, 8, 1, 99), -1),
             with_priority(request(4, 8, 1, 101), -1)},
            200);
  // 3 came within 100 us of 2 and passes it, 4 does not.
  EXPECT_THAT(rank.ticks(3), ElementsAre("prefill 3@0+8!", "prefill 2@0+8!", "prefill 4@0+8!"));
}

TEST(Plans, OneThatDoesNotFitHoldsUpThoseBehindIt) {
  Alone rank(settings_of(8, 64));
  rank.tick({request(1, 64, 32)});
  EXPECT_EQ(rank.tick({request(2, 100, 1), request(3, 4, 1)}), "decode 1@64+1!");
  EXPECT_EQ(rank.scheduler().waiting(), 2);
}

TEST(Plans, PrefillsInARowAreBoundedWhileASequenceDecodes) {
  Settings settings = settings_of(64, 16);
  settings.decode_every_ticks = 3;
  Alone rank(settings);
  rank.tick({request(1, 16, 10)});
  std::vector<std::string> plans;
  for (SequenceId id = 2; id < 10; ++id) {
    const std::string plan = rank.tick({request(id, 16, 1)});
    plans.push_back(plan.substr(0, plan.find(' ')));
  }
  EXPECT_THAT(plans, ElementsAre("prefill", "prefill", "decode", "prefill", "prefill", "prefill", "decode",
                                 "prefill"));
}

TEST(Plans, AMixedStepKeepsToItsPrice) {
  Settings settings = settings_of(64, 256);
  settings.phase = Phase::kMixed;
  settings.price.points = {{1, 1000}, {257, 26'600}};  // 100 us a token
  settings.max_step_us = 6000;                         // 51 tokens
  Alone rank(settings);
  rank.tick({request(1, 16, 20)});
  // 50 positions beside one token, to the end of a block.
  EXPECT_EQ(rank.tick({request(2, 200, 1)}), "mixed 1@16+1! 2@0+48");
  settings.max_step_us = 900;  // not even the token: a block each 8 steps
  Alone tight(settings);
  tight.tick({request(1, 16, 40)});
  tight.tick({request(2, 200, 1)});
  std::int64_t mixed = 0;
  for (const std::string& plan : tight.ticks(24)) mixed += plan.starts_with("mixed 1@") ? 1 : 0;
  EXPECT_EQ(mixed, 3);
}

TEST(Plans, ASlidingWindowNeedsNoMoreBlocksThanItFills) {
  Settings settings = settings_of(4, 8, 4);
  settings.cache.window_tokens = 8;
  settings.max_positions = 200;
  settings.admission = Admission::kChunk;
  Alone rank(settings);
  rank.tick({request(1, 90, 60)});
  rank.finish();
  EXPECT_EQ(rank.scheduler().counters().drawn_tokens, 60);
  EXPECT_EQ(rank.scheduler().counters().preemptions, 0);
}

TEST(Plans, WithoutTokenIdsNothingIsFoundAgain) {
  Alone rank(settings_of(16, 64));
  Request first = request(1, 32, 1);
  first.prompt.clear();  // as a simulator submits
  Rank simulated(settings_of(16, 64));
  for (SequenceId id = 1; id <= 2; ++id) {
    first.id = id;
    simulated.accept(std::vector<Event>{first}, 0);
    const BatchPlan& plan = plan_alone(simulated);
    EXPECT_EQ(text_of(plan), fmt::format("prefill {}@0+32!", id));
    EXPECT_THAT(plan.token_ids, IsEmpty());
    simulated.commit({.tick = plan.tick, .outcomes = {{.id = id, .token = 1}}});
  }
}

TEST(Sequences, TheFirstEndIdEndsAndNothingFollows) {
  Alone rank(settings_of(16, 64));
  rank.group().draw = [](SequenceId, std::int64_t position) { return static_cast<TokenId>(position); };
  Request with_ends = request(1, 4, 10);
  with_ends.end_ids = {9, 6};
  rank.tick({with_ends});
  rank.ticks(2);
  ASSERT_EQ(rank.progress().size(), 1U);
  EXPECT_EQ(rank.progress()[0].token, 6);
  EXPECT_EQ(rank.progress()[0].finish, Finish::kStop);
  EXPECT_EQ(rank.tick(), "idle");
}

TEST(Sequences, APromptWithoutAnAnswerIsOnlyComputed) {
  Alone rank(settings_of(16, 32));
  EXPECT_EQ(rank.tick({request(1, 40, 0)}), "prefill 1@0+32");
  EXPECT_EQ(rank.tick(), "prefill 1@32+8");
  EXPECT_EQ(rank.progress(), (std::vector<Progress>{{.id = 1, .first = true, .finish = Finish::kLength}}));
  EXPECT_FALSE(rank.scheduler().has_work());
}

TEST(Sequences, PositionsOfTheModelEndAnAnswer) {
  Settings settings = settings_of(256, 4096);
  settings.max_positions = 2048;
  Alone rank(settings);
  rank.tick({request(1, 2033, 100), request(2, 2048, 1), request(3, 0, 1), request(4, 2048, 0)});
  std::map<SequenceId, Fault> faults;
  for (const Progress& each : rank.progress()) faults[each.id] = each.fault;
  EXPECT_EQ(faults[2], Fault::kTooLong);
  EXPECT_EQ(faults[3], Fault::kEmpty);
  EXPECT_FALSE(faults.contains(4) && faults[4] != Fault::kNone);
  rank.finish();
  EXPECT_EQ(rank.scheduler().counters().drawn_tokens, 15);
}

TEST(Sequences, AnIdInUseAndRequestsAfterShutdownAreRefused) {
  Alone rank(settings_of(16, 64));
  rank.tick({request(1, 8, 5)});
  rank.tick({request(1, 8, 5)});
  EXPECT_EQ(rank.progress()[0].fault, Fault::kRepeatedId);
  rank.tick({Shutdown{}, request(2, 8, 5)});
  EXPECT_EQ(rank.progress()[0].fault, Fault::kDraining);
  rank.finish();
  rank.tick();
  EXPECT_TRUE(rank.group().rank().verdict().shutdown);
}

TEST(Sequences, AStopStringEndsLikeAnEndId) {
  Alone rank(settings_of(16, 64));
  rank.tick({request(1, 8, 5)});
  rank.tick({StopText{1}});
  EXPECT_EQ(rank.progress(), (std::vector<Progress>{{.id = 1, .finish = Finish::kStop}}));
}

// sgl-project/sglang PR #22273, #24070, #38981: aborts that lose blocks or free them twice.
TEST(Aborts, InAnyPhaseGiveEverythingBackOnce) {
  for (const std::int64_t block_tokens : {1, 16}) {
    for (const std::int64_t ticks_before :
         {0, 1, 2, 4, 5, 7}) {  // 16 positions in chunks of 4, then 5 tokens
      SCOPED_TRACE(fmt::format("block {} after {} ticks", block_tokens, ticks_before));
      Settings settings = settings_of(64, 4, block_tokens);
      Alone rank(settings);
      std::vector<Event> events = {request(1, 16, 5)};
      for (std::int64_t i = 0; i < ticks_before; ++i) rank.tick(std::exchange(events, {}));
      events.emplace_back(Abort{1});
      events.emplace_back(Abort{1});
      rank.tick(events);
      EXPECT_EQ(rank.progress().size(), 1U);
      EXPECT_EQ(rank.progress()[0].finish, Finish::kAborted);
      EXPECT_EQ(rank.scheduler().memory().used(), 0);
      rank.tick({Abort{1}});
      EXPECT_THAT(rank.progress(), IsEmpty());
      EXPECT_EQ(rank.scheduler().memory().unused(), 64);
    }
  }
}

TEST(Aborts, AfterTheEndAreNothing) {
  Alone rank(settings_of(16, 64));
  rank.tick({request(1, 8, 1)});
  EXPECT_EQ(rank.progress().size(), 1U);
  rank.tick({Abort{1}});
  EXPECT_THAT(rank.progress(), IsEmpty());
}

TEST(Aborts, TwoHundredInARowLeaveTheCacheAsItWas) {
  Alone rank(settings_of(32, 16));
  for (SequenceId id = 1; id <= 200; ++id) {
    rank.tick({request(id, 40, 2048)});
    for (SequenceId i = 0; i < id % 4; ++i) rank.tick();
    rank.tick({Abort{id}});
    EXPECT_EQ(rank.scheduler().memory().unused(), 32);
  }
}

TEST(PrefixCache, TheLastPositionIsAlwaysComputed) {
  Alone rank(settings_of(16, 64));
  const Request first = request(1, 64, 1);
  rank.tick({first});
  EXPECT_EQ(rank.tick({again(2, first)}), "prefill 2@48+16!");
  EXPECT_EQ(rank.progress()[0].cached_tokens, 48);
  Request longer = request(1, 65, 1);
  EXPECT_EQ(rank.tick({again(3, longer)}), "prefill 3@64+1!");
}

TEST(PrefixCache, AnswersOfOnePromptShareItInTheStepThatComputesIt) {
  Alone rank(settings_of(16, 128));
  const Request first = request(1, 40, 4);
  // Keys are written before any row of a step reads.
  EXPECT_EQ(rank.tick({first, again(2, first), again(3, first), again(4, first)}),
            "prefill 1@0+40! 2@32+8! 3@32+8! 4@32+8!");
  EXPECT_EQ(rank.scheduler().memory().used(), 2 + 4);
  rank.finish();
  EXPECT_EQ(rank.scheduler().counters().drawn_tokens, 16);
}

TEST(PrefixCache, AnswersAreFoundByTheNextTurn) {
  Alone rank(settings_of(16, 128, 4));
  rank.tick({request(1, 8, 5)});
  rank.finish();
  Request next = request(1, 8, 1);
  const std::vector<TokenId>& tokens = rank.group().checker().tokens(1);
  next.prompt.assign(tokens.begin(), tokens.begin() + 13);
  next.prompt_tokens = 13;
  EXPECT_EQ(rank.tick({again(2, next)}), "prefill 2@12+1!");
}

// vllm-project/vllm #44701, sgl-project/sglang #2151: keys of another adapter or tenant.
TEST(PrefixCache, AnAdapterIsNoSaltOfTheSameName) {
  Alone rank(settings_of(64, 128));
  SequenceId id = 0;
  const auto cached = [&](const std::string& identity) {
    Request each = again(++id, request(0, 64, 1));
    each.cache_salt = identity;
    rank.tick({each});
    return rank.progress()[0].cached_tokens;
  };
  EXPECT_EQ(cached(cache_identity("X", "", "")), 0);
  EXPECT_EQ(cached(cache_identity("", "X", "")), 0);
  EXPECT_EQ(cached(cache_identity("", "X", "")), 48);
  EXPECT_EQ(cached(""), 0);
  EXPECT_EQ(cached(cache_identity("", "", "image one")), 0);
  EXPECT_EQ(cached(cache_identity("", "", "image two")), 0);
  EXPECT_EQ(cached(cache_identity("", "", "image one")), 48);
  EXPECT_NE(cache_identity("a", "salt1:b", ""), cache_identity("asalt1:b", "", ""));
}

std::uint64_t same_number(std::uint64_t, std::span<const TokenId>) { return 42; }

TEST(PrefixCache, ForcedCollisionsShareNothingWrong) {
  Alone rank(settings_of(64, 128), same_number);
  const Request a = request(1, 64, 1);
  const Request b = request(2, 64, 1);
  rank.tick({a});
  EXPECT_EQ(rank.tick({b}), "prefill 2@0+64!");
  // The second block of a behind the first block of b: same tokens, another beginning.
  Request crossed = again(3, b);
  std::copy(a.prompt.begin() + 16, a.prompt.begin() + 32, crossed.prompt.begin() + 16);
  EXPECT_EQ(rank.tick({crossed}), "prefill 3@16+48!");
  EXPECT_EQ(rank.tick({again(4, a)}), "prefill 4@48+16!");
}

TEST(PrefixCache, WhatWasUnusedForLongestIsLostFirst) {
  // 8 blocks; each prompt fills 2 and finds its first again while it is there.
  Alone rank(settings_of(8, 128));
  for (SequenceId id = 1; id <= 3; ++id) rank.tick({request(id, 32, 1)});
  rank.tick({again(11, request(1, 32, 1))});
  EXPECT_EQ(rank.progress()[0].cached_tokens, 16);
  rank.tick({request(4, 64, 1)});  // takes 4: the unused two, then of 2
  rank.tick({again(12, request(1, 32, 1))});
  EXPECT_EQ(rank.progress()[0].cached_tokens, 16);
  rank.tick({again(13, request(2, 32, 1))});
  EXPECT_EQ(rank.progress()[0].cached_tokens, 0);
}

TEST(States, APrefixIsReusedFromTheLastCheckpointOn) {
  Settings settings = settings_of(32, 256);
  settings.cache.state_slots = 4;
  settings.cache.checkpoint_interval_tokens = 32;
  settings.cache.successor_tokens = 10;
  Alone rank(settings);
  const Request first = request(1, 75, 1);
  // Chunks end at checkpoints; after each its state is copied.
  EXPECT_EQ(rank.tick({first}), "prefill 1@0+32");
  EXPECT_EQ(rank.tick(), "prefill 1@32+32");
  EXPECT_EQ(rank.tick(), "prefill 1@64+11!");
  EXPECT_EQ(rank.tick({again(2, first)}), "prefill 2@64+11!");
  // One position less would leave 9 to be computed: the checkpoint before is taken.
  Request shorter = again(3, first);
  shorter.prompt.resize(73);
  shorter.prompt_tokens = 73;
  EXPECT_EQ(rank.tick({shorter}), "prefill 3@32+32");
}

TEST(States, RunningSequencesComeBeforeCheckpoints) {
  Settings settings = settings_of(64, 256);
  settings.cache.state_slots = 2;
  settings.cache.checkpoint_interval_tokens = 16;
  Alone rank(settings);
  rank.tick({request(1, 20, 30)});
  rank.tick();
  EXPECT_EQ(rank.scheduler().memory().states().checkpoints(), 1);
  rank.tick({request(2, 20, 30)});
  EXPECT_EQ(rank.scheduler().running(), 2);
  EXPECT_EQ(rank.scheduler().memory().states().checkpoints(), 0);
  rank.finish();
}

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
  EXPECT_THAT(fault(begin + "accept 1 2\n"), HasSubstr("more words"));
  EXPECT_THAT(fault(begin + "accept 1\ntable 0\n"), HasSubstr("no row"));
  EXPECT_THAT(fault(begin + "accept 1\ntable 99999999999\n"), HasSubstr("shorter"));
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
