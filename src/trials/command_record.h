// What is kept of one trial beside its log.
#pragma once

#include <string>

#include "search/trial.h"
#include "trials/command_evaluator.h"
#include "trials/command_run.h"

namespace sextant::trials {

/// Folders and files of one trial.
struct TrialFolder {
  std::string path;  ///< absolute
  std::string config() const { return path + "/config"; }
  std::string out() const { return path + "/out"; }
};

/// Where trial `number` of a run lies: "trials/0001" for number 0.
std::string trial_folder_path(const std::string& run_folder, std::size_t number);

/// Makes the folder of trial `number` below `run_folder` with the plan's launch files. What an earlier, lost
/// trial of the same number left is renamed. Throws base::OutsideError.
TrialFolder make_trial_folder(const std::string& run_folder, std::size_t number, const TrialPlan& plan);

/// What the search learns of a run. `price_s` is the wall time.
search::TrialResult trial_result(const TrialPlan& plan, const CommandResult& result);

/// result.json (docs/reference/logs.md): verdict with evidence, pace, memory, labels, price. `scheduler` is a
/// job id or empty.
std::string trial_record(const search::TrialRequest& request, const TrialPlan& plan,
                         const std::string& command, const CommandResult& result,
                         const std::string& scheduler = {});

/// Variables that a trial's command finds in its environment, besides Sextant's own environment.
std::vector<std::pair<std::string, std::string>> trial_environment(const search::TrialRequest& request,
                                                                   const TrialPlan& plan,
                                                                   const TrialFolder& folder);

/// Values of command_placeholders().
std::map<std::string, std::string> placeholder_values(const search::TrialRequest& request,
                                                      const TrialPlan& plan, const TrialFolder& folder);

}  // namespace sextant::trials
