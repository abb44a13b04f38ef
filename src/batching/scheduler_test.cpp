// What a scheduler plans for histories small enough to be checked by hand, and what became of known faults of
// serving engines.
#include "batching/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batching/test_rank.h"

namespace sextant::batching {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

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

}  // namespace
}  // namespace sextant::batching
