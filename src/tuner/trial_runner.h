// Who runs the candidates of a measured search: a shell command here, or a job of Slurm.
#pragma once

#include <memory>

#include "search/run_trials.h"
#include "trials/command_evaluator.h"
#include "tuner/tune.h"

namespace sextant::tuner {

/// Throws base::UserError for flags by which no trial can be run.
void check_runner(const TuneFlags& flags);

/// How trials are run in the folder flags.out: the command's words and limits. Commands start in
/// `working_folder`.
trials::CommandOptions command_options(const TuneFlags& flags, const std::string& working_folder);

/// The evaluator that flags.evaluator names: "command" or "slurm". `plan` as in trials/command_evaluator.h.
std::unique_ptr<search::TrialEvaluator> trial_runner(const TuneFlags& flags,
                                                     const trials::CommandOptions& options,
                                                     const trials::TrialPlanner& plan);

}  // namespace sextant::tuner
