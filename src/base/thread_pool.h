// Work on several threads with results that do not depend on their number.
#pragma once

#include <cstddef>
#include <functional>

namespace sextant::base {

/// The number of threads to use when the user says nothing: the processors this process may run on.
std::size_t default_threads();

/// Calls `body(index, worker)` once for every index in [0, count), from `threads` threads (this one
/// included); worker is in [0, threads). Blocks of `grain` indices are handed out in order. The first
/// exception is rethrown here after all threads have stopped. Thread-safe with respect to other calls.
void parallel_for(std::size_t count, std::size_t grain, std::size_t threads,
                  const std::function<void(std::size_t index, std::size_t worker)>& body);

}  // namespace sextant::base
