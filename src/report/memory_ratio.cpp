#include "report/memory_ratio.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace sextant::report {

MemoryRatio memory_ratio(const nlohmann::ordered_json& document) {
  MemoryRatio ratio;
  double sum = 0;
  for (const nlohmann::ordered_json& trial : document.at("history")) {
    if (trial.at("state") != "ok" || trial.at("peak_bytes").is_null() ||
        trial.at("projected_peak_bytes").is_null())
      continue;
    const double one = trial.at("peak_bytes").get<double>() / trial.at("projected_peak_bytes").get<double>();
    ratio.smallest = ratio.trials == 0 ? one : std::min(ratio.smallest, one);
    ratio.largest = ratio.trials == 0 ? one : std::max(ratio.largest, one);
    sum += std::log(one);
    ++ratio.trials;
  }
  if (ratio.trials > 0) ratio.mean = std::exp(sum / ratio.trials);
  return ratio;
}

}  // namespace sextant::report
