// Trials that run: the evaluator that starts a shell command for each candidate and reads its log.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "backends/log_steady.h"
#include "backends/workload.h"
#include "search/run_trials.h"
#include "search/space.h"
#include "trials/command_run.h"
#include "trials/command_template.h"

namespace sextant::trials {

/// What a candidate needs to be run, whoever runs it.
struct TrialPlan {
  std::map<std::string, std::string> files;  ///< launch files by name (backends::export_files)
  std::string config;                        ///< which of them is {config}
  backends::LogSettings settings;
  int nodes = 1;
  int gpus_per_node = 0;
  double price_per_gpu_hour = 0;  ///< 0 = not known
  double expert_skew = 1;         ///< that the projection reckons with; 1 = balanced
  bool forced_balance = false;    ///< the launch files force routing to be even
  std::string layout;             ///< for people
};

/// The plan of a point. Called once a trial, from the thread that runs it.
using TrialPlanner = std::function<TrialPlan(const search::Point&)>;

/// Plans of the points of `space` applied to `workload`. Both must outlive it.
TrialPlanner workload_planner(const search::Space& space, const backends::Workload& workload);

struct CommandOptions {
  CommandTemplate command;
  std::string folder;          ///< of the run; trials lie below, "trials/0001" and so on
  std::string working_folder;  ///< the command's; empty = where Sextant was started
  RunLimits limits;            ///< the trial's own limit lowers time_s
};

/// Placeholders of a command: {config} the main launch file, {config_dir} the folder of all, {out} a folder
/// for the command's own files and logs, {trial} the trial's number from 1, {repeat} the repeat from 0,
/// {nodes}, {gpus_per_node}, {gpus}.
const std::vector<std::string>& command_placeholders();

/// Throws base::UserError for a command that cannot work: see CommandTemplate::check; and for one that uses
/// neither {config} nor {config_dir} nor their variables, which would run the same for every candidate.
void check_command(const CommandTemplate& command);

/// A trial's folder holds "config/" (launch files), "command.sh" (what was run), "output.log", "out/" and
/// "result.json" (docs/reference/logs.md). One that an earlier, lost trial of the same number left is kept
/// beside it. `space` is for names only. Arguments must outlive the evaluator.
std::unique_ptr<search::TrialEvaluator> command_evaluator(const CommandOptions& options,
                                                          TrialPlanner planner);

}  // namespace sextant::trials
