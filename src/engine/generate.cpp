#include "engine/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/error.h"
#include "batching/rank.h"

namespace sextant::engine {
namespace {

using batching::TokenId;

/// One seat for each prompt, and blocks for all: nothing waits, nothing is computed twice.
batching::Settings settings_for(const Executor& executor, std::size_t prompts,
                                const GenerateOptions& options) {
  const auto seats = static_cast<std::int64_t>(prompts);
  return {.cache = executor.cache(),
          .seats = seats,
          .step_tokens = std::max(options.step_tokens, seats),
          .prefix_cache = false,
          .phase = batching::Phase::kPrefillFirst,
          .decode_every_ticks = 0};
}

class Run {
 public:
  Run(Executor& executor, std::span<const std::vector<TokenId>> prompts,
      std::span<const std::int64_t> end_ids, const GenerateOptions& options,
      const std::function<void(std::size_t, TokenId)>& on_token)
      : executor_(executor),
        prompts_(prompts),
        options_(options),
        on_token_(on_token),
        rank_(settings_for(executor, prompts.size(), options)) {
    if (!options.ignore_end) end_ids_.assign(end_ids.begin(), end_ids.end());
  }

  Generations run() {
    begin();
    while (rank_.scheduler().has_work()) step();
    for (std::size_t i = 0; i < prompts_.size(); ++i) executor_.end(static_cast<batching::SequenceId>(i));
    return std::move(result_);
  }

 private:
  void begin() {
    std::vector<batching::Event> requests;
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
      const auto id = static_cast<batching::SequenceId>(i);
      const auto prompt_tokens = static_cast<std::int64_t>(prompts_[i].size());
      result_.prompts.push_back({.prompt_tokens = prompt_tokens});
      kernels::SamplingParameters sampling = options_.sampling;
      sampling.choice = i;
      executor_.begin(id, sampling, prompts_[i]);
      requests.emplace_back(batching::Request{.id = id,
                                              .prompt = prompts_[i],
                                              .prompt_tokens = prompt_tokens,
                                              .end_ids = end_ids_,
                                              .max_new_tokens = options_.max_tokens});
    }
    SEXTANT_CHECK(rank_.accept(requests, 0).empty());
  }

  void step() {
    const batching::BatchPlan& plan = batching::plan_alone(rank_);
    const std::int64_t tokens = batching::tokens_of(plan);
    const bool prefill = plan.kind == batching::StepKind::kPrefill;
    const auto begin = std::chrono::steady_clock::now();
    const batching::StepResult result = executor_.run(plan);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    (prefill ? result_.prefill_tokens : result_.decode_tokens) += tokens;
    (prefill ? result_.prefill_s : result_.decode_s) += seconds;
    for (const batching::Progress& progress : rank_.commit(result)) take(progress);
  }

  void take(const batching::Progress& progress) {
    const auto prompt = static_cast<std::size_t>(progress.id);
    Generation& generation = result_.prompts[prompt];
    if (progress.finish == batching::Finish::kError) generation.finish_reason = "error";
    if (!progress.has_token) return;
    generation.token_ids.push_back(progress.token);
    if (on_token_) on_token_(prompt, progress.token);
    if (progress.finish == batching::Finish::kStop) generation.finish_reason = "stop";
    if (progress.finish == batching::Finish::kLength) generation.finish_reason = "length";
  }

  Executor& executor_;
  std::span<const std::vector<TokenId>> prompts_;
  std::vector<TokenId> end_ids_;
  const GenerateOptions& options_;
  const std::function<void(std::size_t, TokenId)>& on_token_;
  batching::Rank rank_;
  Generations result_;
};

}  // namespace

batching::CacheSpec cache_for(std::span<const std::vector<TokenId>> prompts, std::int64_t max_tokens) {
  batching::CacheSpec cache;
  for (const std::vector<TokenId>& prompt : prompts) {
    const std::int64_t positions = static_cast<std::int64_t>(prompt.size()) + max_tokens;
    cache.blocks += (positions + cache.block_tokens - 1) / cache.block_tokens;
  }
  return cache;
}

Generations generate(Executor& executor, std::span<const std::vector<TokenId>> prompts,
                     std::span<const std::int64_t> end_ids, const GenerateOptions& options,
                     const std::function<void(std::size_t, TokenId)>& on_token) {
  return Run(executor, prompts, end_ids, options, on_token).run();
}

void require_sane_prompts(const ServedModel& model, std::span<const std::vector<TokenId>> prompts,
                          std::int64_t max_tokens, const std::string& flag) {
  if (prompts.empty()) throw base::UserError({flag}, {}, "holds no prompt; give at least one");
  const std::int64_t vocabulary = model.architecture.vocabulary;
  const std::int64_t positions = model.architecture.maximum_positions;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto size = static_cast<std::int64_t>(prompts[i].size());
    if (size == 0)
      throw base::UserError({flag}, {}, fmt::format("prompt {} is empty; give at least one token", i));
    for (const TokenId id : prompts[i]) {
      if (id >= 0 && id < vocabulary) continue;
      throw base::UserError({flag}, {},
                            fmt::format("prompt {} holds token {}, which is outside the model's "
                                        "vocabulary of {}",
                                        i, id, vocabulary));
    }
    if (positions > 0 && size + max_tokens > positions) {
      throw base::UserError({flag}, {},
                            fmt::format("prompt {} has {} tokens, and {} more exceed the model's {} "
                                        "positions; shorten it or lower --max-tokens",
                                        i, size, max_tokens, positions));
    }
  }
}

}  // namespace sextant::engine
