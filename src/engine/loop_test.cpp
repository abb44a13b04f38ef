// Promises of the engine's loop: events of each sequence in order and once; and what a sequence gets does not
// show who else was there, whether its prompt was cut or found in the cache, or whether it was preempted.
#include "engine/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <stdexcept>

#include "base/error.h"
#include "engine/generate.h"
#include "engine/test_model.h"

namespace sextant::engine {
namespace {

using batching::SequenceId;
using batching::TokenId;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// What came for each sequence, to be waited for.
class Inbox {
 public:
  Deliver deliver() {
    return [this](std::span<const TokenEvent> events) { take(events); };
  }
  void take(std::span<const TokenEvent> events) {
    const std::lock_guard lock(mutex_);
    for (const TokenEvent& event : events) {
      events_[event.id].push_back(event);
      if (event.finish != Finish::kNo) ++ended_;
    }
    changed_.notify_all();
  }
  void wait_for_ends(std::int64_t count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return ended_ >= count; }));
  }
  void wait_for_events(SequenceId id, std::size_t count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(
        changed_.wait_for(lock, std::chrono::seconds(20), [&] { return events_[id].size() >= count; }));
  }
  std::vector<TokenEvent> events(SequenceId id) {
    const std::lock_guard lock(mutex_);
    return events_[id];
  }
  std::vector<TokenId> tokens(SequenceId id) {
    std::vector<TokenId> all;
    for (const TokenEvent& event : events(id)) {
      if (event.has_token) all.push_back(event.token);
    }
    return all;
  }
  Finish finish(SequenceId id) { return events(id).back().finish; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<SequenceId, std::vector<TokenEvent>> events_;
  std::int64_t ended_ = 0;
};

constexpr batching::CacheSpec kSmallCache = {.block_tokens = 16, .blocks = 64};

CpuExecutor small_model(const batching::CacheSpec& cache) {
  return {read_served_model(Folder(kConfig).path()),
          LoudTensors{},
          {.isa = kernels::best_isa(), .type = kernels::ElementType::kBFloat16, .cache = cache}};
}

TEST(Loop, TokensComeInOrderAndTheLastSaysWhy) {
  NullExecutor executor(kSmallCache, 1000);
  Inbox inbox;
  Loop loop(executor, {}, inbox.deliver());
  loop.submit({.id = 1, .prompt = {5, 6, 7}, .max_tokens = 4});
  loop.submit({.id = 2, .prompt = {5, 6}, .max_tokens = 9, .end_ids = {6}});
  loop.submit({.id = 3, .prompt = {5, 6}, .max_tokens = 0});
  inbox.wait_for_ends(3);
  EXPECT_THAT(inbox.tokens(1), ElementsAre(4, 5, 6, 7));  // id + position
  EXPECT_EQ(inbox.finish(1), Finish::kLength);
  EXPECT_THAT(inbox.tokens(2), ElementsAre(4, 5, 6));
  EXPECT_EQ(inbox.finish(2), Finish::kStop);
  EXPECT_THAT(inbox.tokens(3), IsEmpty());
  EXPECT_EQ(inbox.finish(3), Finish::kLength);
}

TEST(Loop, WhatCannotBeServedIsRefusedWithAReason) {
  NullExecutor executor(kSmallCache, 1000);
  Inbox inbox;
  Loop loop(executor, {.vocabulary = 1000}, inbox.deliver());
  loop.submit({.id = 1, .prompt = {}});
  loop.submit({.id = 2, .prompt = std::vector<TokenId>(1024, 1)});
  loop.submit({.id = 3, .prompt = {5, 1000}});
  loop.submit({.id = 4, .prompt = {-1}});
  loop.submit({.id = 5, .prompt = {1}, .max_tokens = 500});
  loop.submit({.id = 5, .prompt = {1}});
  inbox.wait_for_ends(6);
  const auto error = [&](SequenceId id) { return inbox.events(id).front().error; };
  EXPECT_THAT(error(1), HasSubstr("empty"));
  EXPECT_THAT(error(2), HasSubstr("1024"));
  EXPECT_THAT(error(3), HasSubstr("token 1000"));
  EXPECT_THAT(error(4), HasSubstr("token -1"));
  EXPECT_EQ(inbox.tokens(5).size(), 500U);
}

TEST(Loop, SettingsThatCannotBeAreTheUsersFault) {
  NullExecutor nothing({.block_tokens = 16, .blocks = 0}, 1000);
  EXPECT_THROW(Loop(nothing, {}, [](auto) {}), base::UserError);
}

/// Tells when a step begins, and waits there until it may go on.
class GatedExecutor : public NullExecutor {
 public:
  using NullExecutor::NullExecutor;
  batching::StepResult run(const batching::BatchPlan& plan) override {
    std::unique_lock lock(mutex_);
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return allowed_ > 0 || open_; });
    --allowed_;
    return NullExecutor::run(plan);
  }
  void wait_for_step(std::int64_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_ >= count; });
  }
  void allow_one() {
    const std::lock_guard lock(mutex_);
    ++allowed_;
    changed_.notify_all();
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t begun_ = 0;
  std::int64_t allowed_ = 0;
  bool open_ = false;
};

TEST(Loop, WhatComesDuringAStepEntersBeforeTheNext) {
  GatedExecutor executor(kSmallCache, 1000);
  Inbox inbox;
  Loop loop(executor, {}, inbox.deliver());
  loop.submit({.id = 1, .prompt = {1, 2}, .max_tokens = 100});
  executor.wait_for_step(1);
  loop.submit({.id = 2, .prompt = {1, 2}, .max_tokens = 1});
  loop.abort(1);
  loop.abort(1);
  loop.abort(77);
  executor.allow_one();
  executor.wait_for_step(2);  // 2 is computed, alone
  EXPECT_THAT(inbox.tokens(1), ElementsAre(3));
  EXPECT_EQ(inbox.finish(1), Finish::kAborted);
  EXPECT_EQ(inbox.events(1).size(), 2U);
  executor.open();
  inbox.wait_for_ends(2);
}

TEST(Loop, AStopStringEndsASequenceAsStopped) {
  GatedExecutor executor(kSmallCache, 1000);
  Inbox inbox;
  Loop loop(executor, {}, inbox.deliver());
  loop.submit({.id = 1, .prompt = {1, 2}, .max_tokens = 100});
  executor.wait_for_step(1);
  loop.stop_text(1);
  executor.open();
  inbox.wait_for_ends(1);
  EXPECT_EQ(inbox.finish(1), Finish::kStop);
}

TEST(Loop, DrainingEndsWhatRunsAndRefusesWhatComes) {
  NullExecutor executor(kSmallCache, 1000);
  Inbox inbox;
  Loop loop(executor, {}, inbox.deliver());
  loop.submit({.id = 1, .prompt = {1, 2}, .max_tokens = 700});
  loop.drain(20.0);
  EXPECT_EQ(inbox.tokens(1).size(), 700U);
  loop.submit({.id = 2, .prompt = {1, 2}});
  inbox.wait_for_ends(2);
  EXPECT_THAT(inbox.events(2).front().error, HasSubstr("shutting down"));
  EXPECT_EQ(loop.counters().kv_blocks_used, 0);
}

TEST(Loop, DrainingAbortsWhatTakesTooLong) {
  GatedExecutor executor(kSmallCache, 1000);
  Inbox inbox;
  Loop loop(executor, {}, inbox.deliver());
  loop.submit({.id = 1, .prompt = {1, 2}, .max_tokens = 700});
  executor.wait_for_step(1);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    executor.open();
  });
  loop.drain(0.001);
  opener.join();
  EXPECT_EQ(inbox.finish(1), Finish::kAborted);
}

class FailingExecutor : public NullExecutor {
 public:
  using NullExecutor::NullExecutor;
  batching::StepResult run(const batching::BatchPlan& plan) override {
    if (plan.tick >= 2) throw std::runtime_error("no memory is left");
    return NullExecutor::run(plan);
  }
};

TEST(Loop, AFailureOfTheExecutorEndsAllWithItsReason) {
  FailingExecutor executor(kSmallCache, 1000);
  Inbox inbox;
  Loop loop(executor, {}, inbox.deliver());
  loop.submit({.id = 1, .prompt = {1, 2}, .max_tokens = 100});
  inbox.wait_for_ends(1);
  EXPECT_EQ(inbox.tokens(1).size(), 2U);
  EXPECT_THAT(inbox.events(1).back().error, HasSubstr("no memory is left"));
  loop.submit({.id = 2, .prompt = {1, 2}});
  inbox.wait_for_ends(2);
  EXPECT_THAT(loop.failure(), HasSubstr("no memory is left"));
  loop.drain(20.0);
}

TEST(Loop, ABoundOnStepsIsKeptByPricesThatAreMeasuredFirst) {
  CpuExecutor executor = small_model(kSmallCache);
  Inbox inbox;
  Loop loop(executor,
            {.settings = {.step_tokens = 64, .phase = batching::Phase::kMixed, .max_step_us = 1'000'000},
             .vocabulary = 101},
            inbox.deliver());
  loop.submit({.id = 1, .prompt = random_prompt(100, 1), .max_tokens = 8});
  loop.submit({.id = 2, .prompt = random_prompt(100, 2), .max_tokens = 8});
  inbox.wait_for_ends(2);
  EXPECT_EQ(inbox.tokens(2).size(), 8U);
  EXPECT_EQ(loop.counters().scheduler.preemptions, 0);
}

TEST(Loop, ManyThreadsSubmitAndAbort) {
  NullExecutor executor({.block_tokens = 16, .blocks = 200}, 1000);
  Inbox inbox;
  Loop loop(executor, {.settings = {.seats = 32, .step_tokens = 64}}, inbox.deliver());
  std::vector<std::thread> threads;
  for (SequenceId t = 0; t < 4; ++t) {
    threads.emplace_back([&loop, t] {
      for (SequenceId i = 0; i < 100; ++i) {
        const SequenceId id = t * 100 + i;
        loop.submit({.id = id,
                     .prompt = std::vector<TokenId>(static_cast<std::size_t>(1 + i % 70), 3),
                     .max_tokens = 20});
        if (i % 3 == 0) loop.abort(id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  inbox.wait_for_ends(400);
  for (SequenceId id = 0; id < 400; ++id) {
    if (id % 100 % 3 == 0) continue;
    EXPECT_EQ(inbox.tokens(id).size(), 20U) << id;
  }
  loop.drain(20.0);
  const EngineCounters counters = loop.counters();
  EXPECT_EQ(counters.kv_blocks_used, 0);
  EXPECT_EQ(counters.waiting + counters.running, 0);
  EXPECT_EQ(counters.scheduler.finished + counters.scheduler.aborted, 400);
}

struct Told {
  std::vector<TokenId> tokens;
  std::vector<double> logprobs;
  std::int64_t cached_tokens = 0;
  std::vector<TokenLogprob> of_prompt;
  bool operator==(const Told& other) const { return tokens == other.tokens && logprobs == other.logprobs; }
};

/// Submits batch after batch, each when the one before has ended, tick by tick. Log-probabilities are
/// compared to the last bit: they are functions of all logits.
std::map<SequenceId, Told> tell(Executor& executor, const TickOptions& options,
                                const std::vector<std::vector<Submit>>& batches,
                                EngineCounters* counters = nullptr) {
  Ticker ticker(executor, options);
  std::map<SequenceId, Told> told;
  std::int64_t now_us = 0;
  for (const std::vector<Submit>& batch : batches) {
    std::vector<Entry> entries;
    for (const Submit& submit : batch) entries.emplace_back(Arrival{.request = submit, .arrival_us = now_us});
    EXPECT_THAT(ticker.accept(std::move(entries), ++now_us), IsEmpty());
    do {
      for (const TokenEvent& event : ticker.step()) {
        Told& each = told[event.id];
        each.cached_tokens += event.cached_tokens;
        if (!event.prompt_logprobs.empty()) each.of_prompt = event.prompt_logprobs;
        if (!event.has_token) continue;
        each.tokens.push_back(event.token);
        for (const TokenLogprob& logprob : event.logprobs) each.logprobs.push_back(logprob.chosen.logprob);
      }
      ticker.accept({}, ++now_us);
    } while (ticker.has_work());
  }
  if (counters != nullptr) *counters = ticker.counters();
  return told;
}

Submit ask(SequenceId id, std::vector<TokenId> prompt, std::int64_t max_tokens = 24) {
  Submit submit{.id = id, .prompt = std::move(prompt), .max_tokens = max_tokens, .logprobs = 0};
  submit.sampling.temperature = 1.0;
  submit.sampling.seed = 7;
  submit.sampling.repetition_penalty = 1.3;
  return submit;
}

class OneAnswer : public testing::Test {
 protected:
  OneAnswer() {
    CpuExecutor executor = small_model(kSmallCache);
    alone_ = tell(executor, {}, {{question_}}).at(0);
  }
  const Submit question_ = ask(0, random_prompt(75, 1));
  Told alone_;
};

TEST_F(OneAnswer, DoesNotShowHowThePromptWasCutAndWhoElseWasThere) {
  EXPECT_EQ(alone_.tokens.size(), 24U);
  EXPECT_EQ(alone_.logprobs.size(), 24U);
  for (const batching::Phase phase : {batching::Phase::kPrefillFirst, batching::Phase::kMixed}) {
    CpuExecutor executor = small_model(kSmallCache);
    TickOptions options{.settings = {.step_tokens = 20, .phase = phase}};
    const std::map<SequenceId, Told> told = tell(
        executor, options, {{ask(1, random_prompt(50, 2)), question_, ask(2, random_prompt(90, 3), 40)}});
    EXPECT_EQ(told.at(0), alone_);
  }
}

TEST_F(OneAnswer, DoesNotShowThatStepsWereCutInTwoHalves) {
  using batching::SplitPolicy;
  for (const SplitPolicy policy :
       {SplitPolicy::kTokenMidpoint, SplitPolicy::kRequestBoundary, SplitPolicy::kBalanced}) {
    CpuExecutor executor = small_model(kSmallCache);
    TickOptions options{.settings = {.step_tokens = 60}};
    options.settings.agreement.overlap = {
        .mode = batching::OverlapMode::kAll, .policy = policy, .min_prefill_tokens = 2};
    Submit same_prompt = question_;
    same_prompt.id = 3;
    EngineCounters counters;
    const std::map<SequenceId, Told> told =
        tell(executor, options, {{ask(1, random_prompt(50, 2)), question_, same_prompt}}, &counters);
    EXPECT_EQ(told.at(0), alone_);
    EXPECT_EQ(told.at(3), alone_);
    EXPECT_GE(counters.overlap_decisions.at("overlapped"), 24);
  }
}

TEST_F(OneAnswer, DoesNotShowThatItsPromptWasInTheCache) {
  CpuExecutor executor = small_model(kSmallCache);
  Submit again = question_;
  again.id = 5;
  const std::map<SequenceId, Told> told = tell(executor, {}, {{question_}, {again}});
  EXPECT_EQ(told.at(0), alone_);
  EXPECT_EQ(told.at(5), alone_);
  EXPECT_EQ(told.at(5).cached_tokens, 64);
  // Both at once: the second reads what the first writes in the same step.
  CpuExecutor together = small_model(kSmallCache);
  const std::map<SequenceId, Told> both = tell(together, {}, {{question_, again}});
  EXPECT_EQ(both.at(0), alone_);
  EXPECT_EQ(both.at(5), alone_);
  EXPECT_EQ(both.at(5).cached_tokens, 64);
}

TEST_F(OneAnswer, DoesNotShowThatItWasPreempted) {
  for (const bool prefix_cache : {true, false}) {
    // 12 blocks: both prompts have 5, and together grow to 13.
    CpuExecutor executor = small_model({.block_tokens = 16, .blocks = 12});
    EngineCounters counters;
    const std::map<SequenceId, Told> told = tell(executor, {.settings = {.prefix_cache = prefix_cache}},
                                                 {{ask(1, random_prompt(75, 2), 40), question_}}, &counters);
    EXPECT_GE(counters.scheduler.preemptions, 1);
    EXPECT_EQ(told.at(0), alone_);
  }
}

TEST_F(OneAnswer, IsWhatGenerateGives) {
  const std::vector<std::vector<TokenId>> prompts = {question_.prompt};
  CpuExecutor executor = small_model(cache_for(prompts, 24));
  const Generations generations =
      generate(executor, prompts, {}, {.max_tokens = 24, .sampling = question_.sampling});
  EXPECT_EQ(generations.prompts[0].token_ids, alone_.tokens);
}

TEST_F(OneAnswer, PromptLogprobsAreThoseOfTheTokensThatFollow) {
  CpuExecutor executor = small_model(kSmallCache);
  Submit judged = question_;
  judged.prompt_logprobs = true;
  judged.logprobs = 2;
  Submit longer = ask(9, question_.prompt, 1);
  longer.prompt.push_back(alone_.tokens[0]);
  longer.prompt_logprobs = true;
  const TickOptions options{.settings = {.step_tokens = 20}};
  // The prompt is in the cache when it is judged, and is computed nevertheless.
  const std::map<SequenceId, Told> told =
      tell(executor, options, {{ask(1, question_.prompt)}, {judged, longer}});
  EXPECT_EQ(told.at(0), alone_);
  EXPECT_EQ(told.at(0).cached_tokens, 0);
  ASSERT_EQ(told.at(0).of_prompt.size(), 74U);
  EXPECT_EQ(told.at(0).of_prompt[0].top.size(), 2U);
  double probability = 0.0;
  for (const TokenLogprob& each : told.at(0).of_prompt) {
    EXPECT_GE(each.top[0].logprob, each.chosen.logprob);
    probability = std::max(probability, std::exp(each.chosen.logprob));
  }
  EXPECT_LE(probability, 1.0);
  // A drawn token, judged as part of a prompt, has the log-probability that it was drawn with.
  ASSERT_EQ(told.at(9).of_prompt.size(), 75U);
  EXPECT_EQ(told.at(9).of_prompt[74].chosen.token, alone_.tokens[0]);
  EXPECT_EQ(told.at(9).of_prompt[74].chosen.logprob, alone_.logprobs[0]);
}

TEST(SlidingWindow, BlocksBehindItAreGivenBackAndTheAnswerIsTheSame) {
  std::string config = kConfig;
  config.replace(config.find("\"max_window_layers\":2"), 21, "\"max_window_layers\":0");
  const auto executor_with = [&](std::int64_t blocks) {
    return CpuExecutor(read_served_model(Folder(config).path()), LoudTensors{},
                       {.isa = kernels::best_isa(),
                        .type = kernels::ElementType::kFloat32,
                        .cache = {.block_tokens = 16, .blocks = blocks}});
  };
  CpuExecutor large = executor_with(64);
  EXPECT_EQ(large.cache().window_tokens, 40);
  const Submit question = ask(0, random_prompt(150, 1), 60);
  const Told roomy = tell(large, {.settings = {.prefix_cache = false}}, {{question}}).at(0);
  // 210 positions would need 14 blocks.
  CpuExecutor small = executor_with(6);
  const TickOptions options{
      .settings = {.step_tokens = 32, .max_positions = 400, .admission = batching::Admission::kChunk}};
  EXPECT_EQ(tell(small, options, {{question}}).at(0), roomy);
  EXPECT_EQ(roomy.tokens.size(), 60U);
}

TEST(Records, OfAnEngineGiveItsPlansAgain) {
  std::string record;
  NullExecutor executor({.block_tokens = 16, .blocks = 12}, 1000);
  const TickOptions options{.settings = {.step_tokens = 32},
                            .record = [&](std::string_view line) { record += line; }};
  tell(executor, options,
       {{ask(1, random_prompt(50, 1)), ask(2, random_prompt(90, 2)), ask(3, random_prompt(40, 3))}});
  const batching::Replay again = batching::replay("record", record);
  EXPECT_EQ(again.different_line, 0) << again.difference;
  EXPECT_GT(again.ticks, 30);
}

}  // namespace
}  // namespace sextant::engine
