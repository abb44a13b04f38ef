#include "trials/command_evaluator.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "backends/rules.h"
#include "backends/workload.h"
#include "base/error.h"
#include "base/file.h"
#include "trials/command_record.h"
#include "trials/layout_space.h"

namespace sextant::trials {
namespace {

/// The launch file of the framework itself, before Sextant's own form.
std::string main_file(const std::map<std::string, std::string>& files) {
  for (const char* name : {"overlay.yaml", "arguments.txt", "sextant.yaml"}) {
    if (files.contains(name)) return name;
  }
  return files.empty() ? std::string() : files.begin()->first;
}

class CommandEvaluator : public search::TrialEvaluator {
 public:
  CommandEvaluator(const CommandOptions& options, TrialPlanner planner)
      : options_(options), planner_(std::move(planner)) {
    if (options_.working_folder.empty()) {
      std::error_code status;
      options_.working_folder = std::filesystem::current_path(status).string();
    }
  }

  search::TrialResult run(const search::TrialRequest& request, const search::StopRequest& stop) override {
    const TrialPlan plan = planner_(request.point);
    const TrialFolder folder = make_trial_folder(options_.folder, request.number, plan);
    CommandRun run;
    run.command = options_.command.filled(placeholder_values(request, plan, folder));
    run.folder = folder.path;
    run.working_folder = options_.working_folder;
    run.environment = trial_environment(request, plan, folder);
    run.settings = plan.settings;
    run.limits = options_.limits;
    run.limits.time_s = std::min(run.limits.time_s, request.time_limit_s);
    base::write_file(folder.path + "/command.sh", run.command + "\n");
    const CommandResult result = run_command(run, stop);
    base::write_file(folder.path + "/result.json", trial_record(request, plan, run.command, result));
    return trial_result(plan, result);
  }

 private:
  CommandOptions options_;
  TrialPlanner planner_;
};

}  // namespace

TrialPlanner workload_planner(const search::Space& space, const backends::Workload& workload) {
  const auto applier = std::make_shared<PointApplier>(space, workload.job);
  return [&space, &workload, applier](const search::Point& point) {
    const training::Job& job = applier->apply(point);
    TrialPlan plan;
    std::vector<std::string> notes;
    plan.files = backends::export_files(workload, job, notes);
    plan.config = main_file(plan.files);
    plan.settings.sequence_length_tokens = static_cast<double>(job.layout.sequence_tokens);
    plan.settings.global_batch = static_cast<double>(job.layout.global_batch);
    plan.settings.gpus = job.layout.world;
    plan.nodes = job.cluster->nodes;
    plan.gpus_per_node = job.cluster->node.gpus;
    plan.price_per_gpu_hour = job.cluster->price_per_gpu_hour;
    plan.expert_skew = job.layout.expert_skew;
    plan.forced_balance = job.layout.forced_balance;
    plan.layout = search::describe(space, point);
    return plan;
  };
}

const std::vector<std::string>& command_placeholders() {
  static const std::vector<std::string> names{"config", "config_dir", "out",           "trial",
                                              "repeat", "nodes",      "gpus_per_node", "gpus"};
  return names;
}

void check_command(const CommandTemplate& command) {
  command.check(command_placeholders());
  if (command.uses("config") || command.uses("config_dir")) return;
  if (command.text.find("SEXTANT_CONFIG") != std::string::npos) return;
  throw base::UserError(
      {command.flag}, {},
      "never names {config}, so it would run the same for every candidate; put {config} (or "
      "{config_dir}, $SEXTANT_CONFIG) where the launch file belongs");
}

std::unique_ptr<search::TrialEvaluator> command_evaluator(const CommandOptions& options,
                                                          TrialPlanner planner) {
  check_command(options.command);
  return std::make_unique<CommandEvaluator>(options, std::move(planner));
}

}  // namespace sextant::trials
