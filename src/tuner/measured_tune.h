// `sextant tune` with an evaluator that runs its candidates: start, resume and replay a measured search, and
// report on one.
//
// A run folder holds run.sqlite (the journal, from which everything else follows), inputs/, trials/NNNN/
// (what each trial was given and printed), best-N/ (launch files) and result.json.
#pragma once

#include <functional>
#include <string>

#include "search/run_trials.h"
#include "tuner/json.h"
#include "tuner/tune.h"

namespace sextant::tuner {

/// What the world around a measured search gives.
struct MeasuredHooks {
  search::StopRequest stop{};                     ///< somebody wants it to end
  std::function<void(const std::string&)> say{};  ///< one line of progress, for people
  std::string version{};                          ///< of the program
  std::string command_line{};                     ///< as typed
};

/// True when these flags ask for trials, or for a run that has some.
bool wants_trials(const TuneFlags& flags);

/// Runs, or with --resume goes on with, a measured search in the folder flags.out; the document of
/// docs/reference/json.md, also written to result.json there. Throws base::UserError, and base::OutsideError
/// when journal or trials cannot be written.
Json measured_tune(const TuneFlags& flags, const MeasuredHooks& hooks);

/// Takes the decisions of the run in `folder` again without running anything: `{run, decisions, same,
/// divergence, changes, decision_list}`. `flags` were parsed from the run's own arguments.
Json replayed_tune(const TuneFlags& flags, const std::string& folder, const MeasuredHooks& hooks);

/// The document of the run in `folder` as its journal has it now, also while it runs. `flags` were parsed
/// from the run's own arguments.
Json recorded_tune(const TuneFlags& flags, const std::string& folder);

/// Every record of the run in `folder` as CSV tables and as journal.json, into `to`.
void write_tables(const std::string& folder, const std::string& to);

}  // namespace sextant::tuner
