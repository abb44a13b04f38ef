// What steps cost on this machine, measured before the first request.
#pragma once

#include <cstdint>

#include "batching/step_price.h"
#include "engine/executor.h"

namespace sextant::engine {

/// Times steps of 1, 2, 4, … tokens of made-up prompts, up to `most_tokens` or the executor's cache: the
/// least of three runs each, made ascending. Takes about as long as prefilling 6 * most_tokens tokens. What
/// is in the cache afterwards is of no use. `vocabulary`: ids below it are used.
batching::StepPrice measure_step_price(Executor& executor, std::int64_t most_tokens, std::int64_t vocabulary);

}  // namespace sextant::engine
