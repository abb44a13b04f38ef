#include "engine/logprobs.h"

namespace sextant::engine {

TokenLogprob logprob_of(std::span<const float> logits, batching::TokenId token, std::int64_t top) {
  const auto [logprob, best] = kernels::logprobs_of(logits, token, top);
  TokenLogprob all{.chosen = {token, logprob}};
  for (const kernels::TokenLogprob& each : best) all.top.push_back({each.id, each.logprob});
  return all;
}

}  // namespace sextant::engine
