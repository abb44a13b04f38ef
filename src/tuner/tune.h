// `sextant tune`: the best layout of a space, what was rejected and why, and how sure the answer is.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "search/exhaustive.h"
#include "trials/layout_space.h"
#include "tuner/inputs.h"
#include "tuner/json.h"

namespace sextant::tuner {

struct TuneFlags {
  InputFlags inputs;
  trials::SpaceFlags space;
  std::string planner = "auto";  ///< auto, exhaustive
  std::string evaluator = "projection";
  std::string objective = "tokens_per_s_per_gpu";
  std::string out;  ///< --out DIR; empty: nothing is written
  std::size_t top = 10;
  std::optional<double> memory_margin;  ///< share of memory to leave free; empty: the cluster's own
  std::size_t threads = 0;              ///< 0: all processors
  std::uint64_t seed = 0;
};

/// The JSON document of `sextant tune` (docs/reference/json.md). `progress` may stop the search by returning
/// false; what was found so far is then the answer, uncertified. Throws base::UserError.
Json tune(const TuneFlags& flags, const std::function<bool(const search::Progress&)>& progress);

}  // namespace sextant::tuner
