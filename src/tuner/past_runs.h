// What earlier measured runs found, as examples for a language model (--learn-from).
#pragma once

#include <string>
#include <vector>

namespace sextant::tuner {

/// The most runs that are shown.
inline constexpr std::size_t kMostPastRuns = 3;

/// A JSON list of the runs below `folders` that gained most over their first layout, best first: {model,
/// cluster, backend, trials, first, best, gain, steps: [{trial, planner, layout, why, measured}], said}.
/// `steps` are the trials that raised the best. A folder is that of a run, or of several. Runs in which
/// nothing ran are left out. Throws base::UserError for a folder without a run, and for a result.json that is
/// none.
std::string past_runs(const std::vector<std::string>& folders);

}  // namespace sextant::tuner
