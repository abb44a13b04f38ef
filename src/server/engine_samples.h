// The engine's counters as figures of /metrics.
#pragma once

#include <vector>

#include "engine/messages.h"
#include "server/metrics.h"

namespace sextant::server {

std::vector<Sample> engine_samples(const engine::EngineCounters& counters);

}  // namespace sextant::server
