// Log-probabilities as messages carry them.
#pragma once

#include <cstdint>
#include <span>

#include "engine/messages.h"

namespace sextant::engine {

/// Of `token`, with the `top` most likely ones beside it, of logits as the model gave them.
TokenLogprob logprob_of(std::span<const float> logits, batching::TokenId token, std::int64_t top);

}  // namespace sextant::engine
