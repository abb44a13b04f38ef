// What a server is asked before a run: whether it is ready (it loads its model for minutes, and refuses or
// says "not yet" meanwhile), and what it serves.
#pragma once

#include <functional>
#include <string>

#include "bench/request.h"

namespace sextant::bench {

/// Asks /health four times a second (/v1/models where the server has no /health) until the answer is 200.
/// Returns what the last attempt came to when `at_most_s` has passed or `stop` says so; empty: ready.
std::string wait_until_ready(const Target& target, double at_most_s, const std::function<bool()>& stop);

/// The id of the first model that /v1/models lists. Throws base::OutsideError when the server gives none.
std::string first_model(const Target& target);

}  // namespace sextant::bench
