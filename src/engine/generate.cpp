#include "engine/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/error.h"

namespace sextant::engine {
namespace {

using batching::TokenId;

class Run {
 public:
  Run(Executor& executor, std::span<const std::vector<TokenId>> prompts,
      std::span<const std::int64_t> end_ids, const GenerateOptions& options,
      const std::function<void(std::size_t, TokenId)>& on_token)
      : executor_(executor), prompts_(prompts), end_ids_(end_ids), options_(options), on_token_(on_token) {}

  Generations run() {
    begin();
    if (options_.max_tokens > 0 || executor_.cache().blocks > 0) prefill();
    decode();
    for (std::size_t i = 0; i < prompts_.size(); ++i) executor_.end(static_cast<batching::SequenceId>(i));
    return std::move(result_);
  }

 private:
  void begin() {
    std::int32_t next_block = 0;
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
      result_.prompts.push_back({.prompt_tokens = static_cast<std::int64_t>(prompts_[i].size())});
      kernels::SamplingParameters sampling = options_.sampling;
      sampling.choice = i;
      executor_.begin(static_cast<batching::SequenceId>(i), sampling, prompts_[i]);
      const std::int64_t block_tokens = executor_.cache().block_tokens;
      const std::int64_t positions = result_.prompts[i].prompt_tokens + options_.max_tokens;
      std::vector<std::int32_t>& table = blocks_.emplace_back();
      for (std::int64_t block = 0; block * block_tokens < positions; ++block) table.push_back(next_block++);
    }
    SEXTANT_CHECK_LE(next_block, executor_.cache().blocks);
  }

  void prefill() {
    batching::BatchPlan plan{.tick = tick_, .kind = batching::StepKind::kPrefill};
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
      const std::int64_t all = result_.prompts[i].prompt_tokens;
      for (std::int64_t first = 0; first < all;) {
        const std::int64_t room = options_.step_tokens - batching::tokens_of(plan);
        const std::int64_t tokens = std::min(room, all - first);
        add(plan, i, first, {prompts_[i].data() + first, static_cast<std::size_t>(tokens)},
            first + tokens == all && options_.max_tokens > 0);
        first += tokens;
        if (tokens == room) result_.prefill_s += carry_out(plan);
      }
    }
    result_.prefill_s += carry_out(plan);
    for (const Generation& prompt : result_.prompts) result_.prefill_tokens += prompt.prompt_tokens;
  }

  void decode() {
    while (true) {
      batching::BatchPlan plan{.tick = tick_, .kind = batching::StepKind::kDecode};
      for (std::size_t i = 0; i < prompts_.size(); ++i) {
        const Generation& prompt = result_.prompts[i];
        if (!prompt.finish_reason.empty() || options_.max_tokens == 0) continue;
        const auto drawn = static_cast<std::int64_t>(prompt.token_ids.size());
        add(plan, i, prompt.prompt_tokens + drawn - 1, {&prompt.token_ids.back(), 1}, true);
      }
      if (plan.segments.empty()) return;
      result_.decode_tokens += static_cast<std::int64_t>(plan.segments.size());
      result_.decode_s += carry_out(plan);
    }
  }

  void add(batching::BatchPlan& plan, std::size_t prompt, std::int64_t first, std::span<const TokenId> tokens,
           bool samples) {
    plan.segments.push_back({.id = static_cast<batching::SequenceId>(prompt),
                             .first_position = first,
                             .tokens = static_cast<std::int64_t>(tokens.size()),
                             .samples = samples});
    plan.token_ids.insert(plan.token_ids.end(), tokens.begin(), tokens.end());
    plan.block_tables.push_back(blocks_[prompt]);
  }

  /// Runs the plan, empties it, and returns the seconds that it took.
  double carry_out(batching::BatchPlan& plan) {
    if (plan.segments.empty()) return 0.0;
    const auto begin = std::chrono::steady_clock::now();
    const batching::StepResult step = executor_.run(plan);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    for (const batching::Outcome& outcome : step.outcomes) take(outcome);
    plan = {.tick = ++tick_, .kind = plan.kind, .segments = {}, .token_ids = {}, .block_tables = {}};
    return seconds;
  }

  void take(const batching::Outcome& outcome) {
    const auto prompt = static_cast<std::size_t>(outcome.id);
    Generation& generation = result_.prompts[prompt];
    if (outcome.ended == batching::Ended::kError) {
      generation.finish_reason = "error";
      return;
    }
    generation.token_ids.push_back(outcome.token);
    if (on_token_) on_token_(prompt, outcome.token);
    const bool ends = std::ranges::find(end_ids_, outcome.token) != end_ids_.end();
    if (ends && !options_.ignore_end) {
      generation.finish_reason = "stop";
    } else if (static_cast<std::int64_t>(generation.token_ids.size()) == options_.max_tokens) {
      generation.finish_reason = "length";
    }
  }

  Executor& executor_;
  std::span<const std::vector<TokenId>> prompts_;
  std::span<const std::int64_t> end_ids_;
  const GenerateOptions& options_;
  const std::function<void(std::size_t, TokenId)>& on_token_;
  std::vector<std::vector<std::int32_t>> blocks_;
  std::int64_t tick_ = 0;
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
