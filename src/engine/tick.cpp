#include "engine/tick.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "engine/logprobs.h"

namespace sextant::engine {
namespace {

batching::Settings with_cache(batching::Settings settings, const batching::CacheSpec& cache) {
  settings.cache = cache;
  return settings;
}

batching::Request request_of(Arrival& arrival) {
  Submit& submit = arrival.request;
  return {.id = submit.id,
          .prompt = submit.prompt,
          .prompt_tokens = static_cast<std::int64_t>(submit.prompt.size()),
          .end_ids = std::move(submit.end_ids),
          .max_new_tokens = submit.max_tokens,
          .priority = submit.priority,
          .cache_salt = batching::cache_identity("", submit.cache_salt, ""),
          .reads_cache = !submit.prompt_logprobs,
          .arrival_us = arrival.arrival_us};
}

}  // namespace

Ticker::Ticker(Executor& executor, const TickOptions& options)
    : executor_(executor), options_(options), rank_(with_cache(options.settings, executor.cache())) {
  if (options.record) rank_.record(options.record);
  listen();
}

Ticker::~Ticker() {
  executor_.sampled_logits = nullptr;
  executor_.every_logits = nullptr;
  executor_.wants_every_logits = nullptr;
}

void Ticker::listen() {
  executor_.sampled_logits = [this](const SampledLogits& drawn) {
    Sequence& sequence = sequences_.at(drawn.id);
    if (sequence.logprobs < 0) return;
    sequence.of_token = {logprob_of(drawn.logits, drawn.token, sequence.logprobs)};
  };
  executor_.wants_every_logits = [this](batching::SequenceId id) {
    return sequences_.at(id).prompt_logprobs;
  };
  executor_.every_logits = [this](batching::SequenceId id, std::int64_t position,
                                  std::span<const float> logits) {
    take_prompt_logits(id, position, logits);
  };
}

/// The logits of a position judge the token after it. A preempted prompt is computed again, with the same
/// logits.
void Ticker::take_prompt_logits(batching::SequenceId id, std::int64_t position,
                                std::span<const float> logits) {
  Sequence& sequence = sequences_.at(id);
  const auto judged = static_cast<std::size_t>(position) + 1;
  if (judged >= sequence.prompt.size() || judged != sequence.of_prompt.size() + 1) return;
  if (!kernels::all_finite(logits)) return;
  sequence.of_prompt.push_back(
      logprob_of(logits, sequence.prompt[judged], std::max<std::int64_t>(0, sequence.logprobs)));
}

std::string Ticker::fault_of(const Submit& request) const {
  const std::int64_t vocabulary = options_.vocabulary;
  for (const batching::TokenId token : request.prompt) {
    if (token >= 0 && (vocabulary == 0 || token < vocabulary)) continue;
    return fmt::format("token {} is outside the model's vocabulary of {}", token, vocabulary);
  }
  return {};
}

std::string Ticker::text_of(batching::Fault fault) const {
  switch (fault) {
    case batching::Fault::kNone:
      return {};
    case batching::Fault::kEmpty:
      return "the prompt is empty; give at least one token";
    case batching::Fault::kTooLong:
      return fmt::format("the prompt leaves no position for an answer; prompt and answer share {}",
                         scheduler().max_positions());
    case batching::Fault::kRepeatedId:
      return "a sequence of this id is running";
    case batching::Fault::kDraining:
      return "the server is shutting down";
    case batching::Fault::kNoNumber:
      return "the model gave infinite or undefined logits; are its weights damaged?";
  }
  return {};
}

std::vector<batching::Event> Ticker::enter(std::vector<Entry>& entries, std::vector<TokenEvent>& events) {
  std::vector<batching::Event> entering;
  for (Entry& entry : entries) {
    auto* arrival = std::get_if<Arrival>(&entry);
    if (arrival == nullptr) {
      if (const auto* abort = std::get_if<batching::Abort>(&entry)) entering.emplace_back(*abort);
      if (const auto* stop = std::get_if<batching::StopText>(&entry)) entering.emplace_back(*stop);
      if (std::holds_alternative<batching::Shutdown>(entry)) entering.emplace_back(batching::Shutdown{});
      continue;
    }
    Submit& submit = arrival->request;
    std::string fault = fault_of(submit);
    if (sequences_.contains(submit.id)) fault = text_of(batching::Fault::kRepeatedId);
    if (!fault.empty()) {
      events.push_back({.id = submit.id, .finish = Finish::kError, .error = std::move(fault)});
      continue;
    }
    executor_.begin(submit.id, submit.sampling, submit.prompt);
    Sequence sequence{.prompt = {}, .logprobs = submit.logprobs, .prompt_logprobs = submit.prompt_logprobs};
    if (submit.prompt_logprobs) sequence.prompt = submit.prompt;
    sequences_.emplace(submit.id, std::move(sequence));
    entering.emplace_back(request_of(*arrival));
  }
  return entering;
}

void Ticker::tell(const batching::Progress& progress, std::vector<TokenEvent>& events) {
  const auto it = sequences_.find(progress.id);
  TokenEvent event{.id = progress.id,
                   .has_token = progress.has_token,
                   .token = progress.token,
                   .logprobs = std::move(it->second.of_token),
                   .finish = progress.finish,
                   .error = text_of(progress.fault)};
  it->second.of_token.clear();
  if (progress.first) {
    event.cached_tokens = progress.cached_tokens;
    event.prompt_logprobs = std::move(it->second.of_prompt);
  }
  events.push_back(std::move(event));
  if (progress.finish == Finish::kNo) return;
  executor_.end(progress.id);
  sequences_.erase(it);
}

batching::StepResult Ticker::run(const batching::BatchPlan& plan) {
  idle_ = plan.segments.empty();
  if (idle_) return {.tick = plan.tick};
  const auto begin = std::chrono::steady_clock::now();
  batching::StepResult result = executor_.run(plan);
  result.duration_us =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count();
  counters_.step_us += result.duration_us;
  counters_.longest_step_us = std::max(counters_.longest_step_us, result.duration_us);
  return result;
}

std::vector<TokenEvent> Ticker::accept(std::vector<Entry> entries, std::int64_t now_us) {
  std::vector<TokenEvent> events;
  const std::vector<batching::Event> entering = enter(entries, events);
  for (const batching::Progress& each : rank_.accept(entering, now_us)) tell(each, events);
  return events;
}

std::vector<TokenEvent> Ticker::step() {
  std::vector<TokenEvent> events;
  const batching::StepResult result = run(batching::plan_alone(rank_));
  for (const batching::Progress& each : rank_.commit(result)) tell(each, events);
  return events;
}

std::vector<TokenEvent> Ticker::fail(const std::string& error) {
  std::vector<TokenEvent> events;
  for (const batching::SequenceId id : ids()) {
    events.push_back({.id = id, .finish = Finish::kError, .error = error});
  }
  sequences_.clear();
  return events;
}

std::vector<batching::SequenceId> Ticker::ids() const {
  std::vector<batching::SequenceId> all;
  for (const auto& [id, sequence] : sequences_) all.push_back(id);
  std::ranges::sort(all);
  return all;
}

EngineCounters Ticker::counters() const {
  const batching::Scheduler& scheduler = rank_.scheduler();
  EngineCounters all = counters_;
  all.waiting = scheduler.waiting();
  all.running = scheduler.running();
  all.seats = scheduler.seats();
  all.kv_blocks = scheduler.memory().spec().blocks;
  all.kv_blocks_used = scheduler.memory().used();
  all.max_positions = scheduler.max_positions();
  all.scheduler = scheduler.counters();
  const batching::AgreementCounters& agreed = rank_.counters();
  for (std::size_t i = 0; i < agreed.verdicts.size(); ++i) {
    all.delayer_decisions[batching::name_of(static_cast<batching::Reason>(i))] = agreed.verdicts[i];
  }
  for (std::size_t i = 0; i < agreed.vetoes.size(); ++i) {
    all.overlap_decisions[batching::name_of(static_cast<batching::Veto>(i))] = agreed.vetoes[i];
  }
  return all;
}

}  // namespace sextant::engine
