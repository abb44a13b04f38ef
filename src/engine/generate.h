// A few prompts to their ends, as one batch: what `sextant generate` does between its flags and its output.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "batching/plan.h"
#include "engine/executor.h"
#include "engine/served_model.h"
#include "kernels/isa.h"
#include "kernels/sampling.h"

namespace sextant::engine {

struct GenerateOptions {
  std::int64_t max_tokens = 128;
  bool ignore_end = false;  ///< go on after an end id
  kernels::SamplingParameters sampling = {};
  std::int64_t step_tokens = 512;  ///< most prompt tokens of one step; longer prompts are cut
};

struct Generation {
  std::int64_t prompt_tokens = 0;
  std::vector<batching::TokenId> token_ids = {};  ///< a final end id included
  std::string finish_reason = {};                 ///< "stop", "length"; "error" when the model gave no number
};

struct Generations {
  std::vector<Generation> prompts = {};
  std::int64_t prefill_tokens = 0;
  std::int64_t decode_tokens = 0;  ///< drawn after the first of each prompt
  double prefill_s = 0.0;
  double decode_s = 0.0;
};

/// The cache that generate() needs for these prompts.
batching::CacheSpec cache_for(std::span<const std::vector<batching::TokenId>> prompts,
                              std::int64_t max_tokens);

/// The scheduler of batching/ with a seat for each prompt: prompts first, in steps of at most step_tokens,
/// then all sequences a token a step. Sequence i is prompt i, and draws choice i of the seed. `on_token` sees
/// every token when it is drawn. REQUIRES: executor.cache() holds cache_for(prompts), no prompt is empty.
Generations generate(Executor& executor, std::span<const std::vector<batching::TokenId>> prompts,
                     std::span<const std::int64_t> end_ids, const GenerateOptions& options,
                     const std::function<void(std::size_t prompt, batching::TokenId)>& on_token = {});

/// Throws base::UserError naming `flag` for an empty prompt, an id outside the vocabulary, and a prompt that
/// leaves no room for max_tokens below the model's positions.
void require_sane_prompts(const ServedModel& model, std::span<const std::vector<batching::TokenId>> prompts,
                          std::int64_t max_tokens, const std::string& flag);

}  // namespace sextant::engine
