// Inputs of a run in its journal: kept byte for byte, and found again when the run is resumed, replayed or
// reported on, wherever the files have gone meanwhile.
#pragma once

#include <string>
#include <vector>

#include "journal/records.h"
#include "tuner/tune.h"

namespace sextant::tuner {

/// The role of the input that says what was shown of earlier runs (past_runs.h).
inline constexpr const char* kPastRuns = "past runs";

/// The journal of a run folder.
std::string journal_path(const std::string& folder);

/// `flags`, which were parsed from the run's own arguments, with every input file as it was: the file itself
/// when it still is, otherwise the copy in `folder`, and `notes` says so. Relative paths start where the run
/// started.
TuneFlags with_recorded_inputs(TuneFlags flags, const journal::Run& run, const std::string& folder,
                               std::vector<std::string>& notes);

/// The arguments of the run in `folder`, as typed behind `tune`. Throws base::UserError when no run is there.
std::vector<std::string> recorded_arguments(const std::string& folder);

}  // namespace sextant::tuner
