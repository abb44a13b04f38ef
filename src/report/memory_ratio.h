// How far projected peak memory was off in the trials of a run.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sextant::report {

/// Measured to projected peak memory of the trials that ran.
struct MemoryRatio {
  int trials = 0;
  double mean = 1;  ///< geometric
  double smallest = 1, largest = 1;
};

/// Of the document of a measured search.
MemoryRatio memory_ratio(const nlohmann::ordered_json& document);

}  // namespace sextant::report
