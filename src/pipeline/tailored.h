// Orders built for measured durations.
//
// The orders of `generate` are those that frameworks launch: fixed lists that suit equal stages. A scheduler
// that measures its stages first, as the zero-bubble project's does, can do better when they are not equal.
#pragma once

#include <span>
#include <vector>

#include "pipeline/replay.h"
#include "pipeline/schedule.h"

namespace sextant::pipeline {

/// The shortest of the orders that `algorithm` has to offer for these durations within `max_live` (as in
/// `generate`); its own order wins ties. Requires a schedulable shape and limits that are not `over_limit`.
///   - zb-h1 and zb-h2 are never longer than 1F1B with the same durations, whatever they are: with every W
///     right behind its B a micro-batch is nowhere later than in 1F1B, and that order is among those tried;
///   - zb-v and v-half also try the building blocks with less memory than their own;
///   - the others have one order.
std::vector<std::vector<Step>> tailored_orders(Algorithm algorithm, const Shape& shape,
                                               const Durations& durations,
                                               std::span<const int> max_live = {});

}  // namespace sextant::pipeline
