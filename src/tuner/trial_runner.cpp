#include "tuner/trial_runner.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "trials/slurm_evaluator.h"

namespace sextant::tuner {
namespace {

constexpr double kMinute_s = 60;

void require_minutes(const char* flag, double value) {
  if (value > 0 && std::isfinite(value)) return;
  throw base::UserError({fmt::format("{} {}", flag, value)}, {}, "is no time; give minutes above 0");
}

}  // namespace

void check_runner(const TuneFlags& flags) {
  const MeasureFlags& measure = flags.measure;
  if (flags.evaluator != "command" && flags.evaluator != "slurm") {
    const std::vector<std::string> known{"projection", "profile", "command", "slurm"};
    throw base::UserError(
        {"--evaluator " + flags.evaluator}, {},
        "no such evaluator; projection and profile run nothing, command runs each candidate here, slurm "
        "as a job" +
            base::did_you_mean(flags.evaluator, known));
  }
  if (measure.command.empty()) {
    throw base::UserError({"--evaluator " + flags.evaluator}, {},
                          "has no command to run; give --command 'TEMPLATE', in which {config} stands for "
                          "the candidate's launch file");
  }
  if (flags.out.empty()) {
    throw base::UserError({"--evaluator " + flags.evaluator}, {},
                          "needs a folder for its journal and its trials; give --out DIR");
  }
  if (!measure.sbatch.empty() && flags.evaluator != "slurm") {
    throw base::UserError({"--sbatch"}, {}, "is for jobs of Slurm; add --evaluator slurm, or drop it");
  }
  require_minutes("--trial-minutes", measure.trial_minutes);
  require_minutes("--hang-minutes", measure.hang_minutes);
  if (measure.minutes) require_minutes("--minutes", *measure.minutes);
  trials::CommandTemplate command;
  command.text = measure.command;
  trials::check_command(command);
}

trials::CommandOptions command_options(const TuneFlags& flags, const std::string& working_folder) {
  trials::CommandOptions options;
  options.command.text = flags.measure.command;
  options.folder = flags.out;
  options.working_folder = working_folder;
  options.limits.hang_s = flags.measure.hang_minutes * kMinute_s;
  options.limits.enough_steps = flags.measure.steps;
  return options;
}

std::unique_ptr<search::TrialEvaluator> trial_runner(const TuneFlags& flags,
                                                     const trials::CommandOptions& options,
                                                     const trials::TrialPlanner& plan) {
  if (flags.evaluator != "slurm") return trials::command_evaluator(options, plan);
  trials::SlurmOptions slurm;
  slurm.command = options.command;
  slurm.arguments = flags.measure.sbatch;
  slurm.folder = options.folder;
  slurm.working_folder = options.working_folder;
  slurm.limits = options.limits;
  return trials::slurm_evaluator(slurm, plan);
}

}  // namespace sextant::tuner
