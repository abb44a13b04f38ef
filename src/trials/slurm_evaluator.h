// Trials as jobs of Slurm: submitted, watched through their logs and the scheduler, cancelled when it is
// time.
#pragma once

#include <limits>
#include <memory>
#include <string>

#include "search/run_trials.h"
#include "trials/command_evaluator.h"
#include "trials/slurm_client.h"

namespace sextant::trials {

struct SlurmOptions {
  CommandTemplate command;  ///< runs inside of the job, on its first node; starts the others with srun
  std::string arguments;    ///< for sbatch, as the shell reads them: "--partition=gpu --gres=gpu:8"
  std::string folder;       ///< of the run; must be on a file system that all nodes share
  std::string working_folder;
  RunLimits limits;  ///< time_s counts from when the job starts to run
  double queue_s = std::numeric_limits<double>::infinity();  ///< longest wait for nodes
  double poll_s = 5;                                         ///< between two questions to the scheduler
  double silence_s = 600;  ///< the controller may be away for so long while nothing else is known
  double settle_s = 5;     ///< for the job's last lines to appear on this host
  double cancel_s = 90;    ///< for a cancelled job to be gone
};

/// One job a trial, with as many nodes as the cluster has (sbatch's own arguments may say otherwise), never
/// requeued. The job's number is kept in the trial's folder, so that a job whose trial was lost with its
/// Sextant is cancelled before the trial is run again. Price counts from when the job runs, not from when it
/// waits. `runner` is for tests; empty = really.
std::unique_ptr<search::TrialEvaluator> slurm_evaluator(const SlurmOptions& options, TrialPlanner planner,
                                                        ProgramRunner runner = {});

}  // namespace sextant::trials
