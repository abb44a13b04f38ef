// From logits to a token.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sextant::kernels {

/// Applied in this order: bias, penalties, temperature, top-k, top-p, min-p.
struct SamplingParameters {
  double temperature = 0.0;  ///< 0: the most likely token, the lowest id among equals
  std::int64_t top_k = 0;    ///< 0: all
  double top_p = 1.0;        ///< the fewest most likely tokens whose probabilities reach it
  double min_p = 0.0;        ///< tokens below this share of the most likely one's probability are left out
  double repetition_penalty =
      1.0;                        ///< of prompt and answer: divides positive logits, multiplies negative ones
  double presence_penalty = 0.0;  ///< of the answer: subtracted once from tokens that were used
  double frequency_penalty = 0.0;  ///< of the answer: subtracted for each use
  std::map<std::int32_t, float> logit_bias = {};
  std::uint64_t seed = 0;
  std::uint64_t choice = 0;  ///< which of several answers to one prompt
};

/// Throws base::UserError naming the flag of the first impossible value.
void require_sane(const SamplingParameters& parameters);

/// How often the tokens of a sequence were used.
struct TokenCounts {
  std::map<std::int32_t, std::int64_t> prompt = {};
  std::map<std::int32_t, std::int64_t> answer = {};
};

/// The token at `position` of a sequence: a function of logits, parameters and counts alone. `logits` is used
/// as working memory. REQUIRES: at least one logit, all finite.
std::int32_t sample(std::span<float> logits, const SamplingParameters& parameters, const TokenCounts& counts,
                    std::int64_t position);

struct TokenLogprob {
  std::int32_t id = 0;
  double logprob = 0.0;
};

/// The log-probability of `token` and of the `top` most likely ones (ties: lowest id first), of the logits as
/// the model gave them.
std::pair<double, std::vector<TokenLogprob>> logprobs_of(std::span<const float> logits, std::int32_t token,
                                                         std::int64_t top);

/// Whether no logit is a NaN or an infinity.
bool all_finite(std::span<const float> logits);

}  // namespace sextant::kernels
