#include "trials/slurm_evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "trials/command_output.h"
#include "trials/command_record.h"
#include "trials/command_watch.h"
#include "trials/slurm_job.h"

namespace sextant::trials {
namespace {

using How = backends::RunEnd::How;

constexpr double kLookS = 0.1;           // between two looks at logs
constexpr double kDiscoverS = 2;         // between two searches for new log files
constexpr double kSchedulerLimitS = 60;  // of one command
constexpr const char* kStatusName = "exit_status";
constexpr const char* kJobName = "job";

/// The text of a small file; empty when there is none.
std::string text_of(const std::string& path) {
  std::ifstream stream(path);
  std::string text;
  std::getline(stream, text);
  return std::string(base::trim(text));
}

/// What the job runs. The exit status is kept in a file, because a scheduler without accounting forgets it.
std::string batch_script(const std::string& command, const TrialFolder& folder,
                         const std::vector<std::pair<std::string, std::string>>& environment) {
  std::string script = "#!/bin/sh\n";
  for (const auto& [name, value] : environment) script += "export " + name + "=" + shell_quoted(value) + "\n";
  const std::string status = shell_quoted(folder.path + "/" + kStatusName);
  return script + "(\n" + command + "\n)\nstatus=$?\necho $status > " + status + ".tmp && mv " + status +
         ".tmp " + status + "\nexit $status\n";
}

/// One job from its submission to its end.
class SlurmTrial {
 public:
  SlurmTrial(const SlurmOptions& options, const SlurmClient& client, const TrialFolder& folder,
             const backends::LogSettings& settings, const RunLimits& limits, const search::StopRequest& stop)
      : options_(options),
        client_(client),
        folder_(folder),
        stop_(stop),
        watch_(folder.path, settings, limits) {}

  CommandResult run(const std::string& arguments, const std::string& name) {
    const auto submission = client_.submit(arguments, shell_quoted(folder_.path + "/command.sh"));
    if (!submission.job) {
      client_.cancel_named(name);  // in case one was made all the same
      return finish({How::kNeverBegan, 0, 0, submission.error});
    }
    job_ = *submission.job;
    base::write_file(folder_.path + "/" + kJobName, job_ + "\n");
    heard_s_ = now_s();
    std::optional<backends::RunEnd> end;
    while (!(end = look())) std::this_thread::sleep_for(std::chrono::duration<double>(kLookS));
    return finish(*end);
  }

  const std::string& job() const { return job_; }

 private:
  double now_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  double running_s() const { return running_since_s_ ? now_s() - *running_since_s_ : 0; }

  std::optional<backends::RunEnd> look() {
    if (stop_()) return backends::RunEnd{How::kInterrupted};
    const double now = now_s();
    if (now >= next_poll_s_) {
      if (auto end = ask_scheduler()) return end;
      next_poll_s_ = now_s() + options_.poll_s;
    }
    if (!running_since_s_) {
      if (now < options_.queue_s) return std::nullopt;
      return backends::RunEnd{How::kNodeFailed, 0, 0, "no nodes within the time to wait: " + waits_for_};
    }
    return look_at_logs();
  }

  std::optional<backends::RunEnd> look_at_logs() {
    if (now_s() >= next_discovery_s_) {
      watch_.discover();
      next_discovery_s_ = now_s() + kDiscoverS;
    }
    watch_.look(running_s());
    return watch_.reason_to_stop(running_s());
  }

  std::optional<backends::RunEnd> ask_scheduler() {
    // An absent controller is waited for, half a minute a question; the logs cannot wait so long.
    const auto abandon = [&] { return stop_() || (running_since_s_ && look_at_logs()); };
    const SlurmClient::Look answer = client_.look(job_, abandon);
    const double now = now_s();
    if (!answer.answered) {
      if (now - heard_s_ < options_.silence_s) return std::nullopt;
      return backends::RunEnd{How::kNodeFailed, 0, 0, "the scheduler does not answer"};
    }
    heard_s_ = now;
    if (!answer.state) return end_by_file();
    const JobState& state = *answer.state;
    waits_for_ = state.reason.empty() ? state.word : state.reason;
    const bool started = state.phase == JobPhase::kRunning || state.phase == JobPhase::kEnding;
    if (started && !running_since_s_) running_since_s_ = now - state.run_s;
    if (state.phase != JobPhase::kEnded) return std::nullopt;
    ended_ = true;
    ran_s_ = state.run_s;
    return run_end(state);
  }

  /// The scheduler has forgotten the job; its script knows how it ended, unless its node died.
  std::optional<backends::RunEnd> end_by_file() {
    ended_ = true;
    const std::string status = text_of(folder_.path + "/" + kStatusName);
    if (status.empty())
      return backends::RunEnd{How::kNodeFailed, 0, 0, "the scheduler no longer knows the job"};
    return backends::RunEnd{How::kExited, std::atoi(status.c_str())};
  }

  CommandResult finish(backends::RunEnd end) {
    CommandResult result;
    end.duration_s = ran_s_ > 0 ? ran_s_ : running_s();
    if (running_since_s_ && !ended_) end.since_last_step_s = running_s() - watch_.last_step_s();
    if (!job_.empty() && !ended_) result.all_gone = cancel();
    if (end.how == How::kExited || end.how == How::kSignalled) settle();
    if (end.how == How::kTimeLimit && !end.since_last_step_s) {
      end.since_last_step_s = end.duration_s - watch_.last_step_s();
    }
    result.end = end;
    result.report = watch_.finish(end);
    return result;
  }

  /// Cancels, again and again while the controller is away, and waits until the job has ended.
  bool cancel() {
    const double give_up = now_s() + options_.cancel_s;
    bool asked = false;
    while (now_s() < give_up) {
      if (!asked) asked = client_.cancel(job_);
      const SlurmClient::Look answer = client_.look(job_, [] { return false; });
      if (answer.answered && (!answer.state || answer.state->phase == JobPhase::kEnded)) return true;
      if (answer.answered && answer.state->phase == JobPhase::kPending) asked = false;
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(options_.poll_s, 1.0)));
    }
    return false;
  }

  /// Shared file systems show a file some seconds after it was written elsewhere.
  void settle() {
    const double end = now_s() + options_.settle_s;
    while (text_of(folder_.path + "/" + kStatusName).empty() && now_s() < end && !stop_()) {
      std::this_thread::sleep_for(std::chrono::duration<double>(kLookS));
    }
  }

  const SlurmOptions& options_;
  const SlurmClient& client_;
  const TrialFolder& folder_;
  const search::StopRequest& stop_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  RunWatch watch_;
  std::string job_;
  std::string waits_for_ = "waiting";
  std::optional<double> running_since_s_;
  double ran_s_ = 0;  ///< as the scheduler says; 0 = it has not
  double heard_s_ = 0;
  double next_poll_s_ = 0;
  double next_discovery_s_ = 0;
  bool ended_ = false;
};

class SlurmEvaluator : public search::TrialEvaluator {
 public:
  SlurmEvaluator(const SlurmOptions& options, TrialPlanner planner, ProgramRunner runner)
      : options_(options), planner_(std::move(planner)), runner_(std::move(runner)) {
    if (options_.working_folder.empty()) {
      std::error_code status;
      options_.working_folder = std::filesystem::current_path(status).string();
    }
  }

  search::TrialResult run(const search::TrialRequest& request, const search::StopRequest& stop) override {
    const TrialPlan plan = planner_(request.point);
    cancel_lost_job(request.number);
    const TrialFolder folder = make_trial_folder(options_.folder, request.number, plan);
    const std::string command = options_.command.filled(placeholder_values(request, plan, folder));
    base::write_file(folder.path + "/command.sh",
                     batch_script(command, folder, trial_environment(request, plan, folder)));
    RunLimits limits = options_.limits;
    limits.time_s = std::min(limits.time_s, request.time_limit_s);
    const SlurmClient client(runner_ ? runner_ : shell_runner(folder.path, kSchedulerLimitS));
    SlurmTrial trial(options_, client, folder, plan.settings, limits, stop);
    const std::string name = job_name(folder);
    const CommandResult result = trial.run(sbatch_arguments(plan, folder, limits, name), name);
    base::write_file(folder.path + "/result.json", trial_record(request, plan, command, result, trial.job()));
    return trial_result(plan, result);
  }

 private:
  /// Different for every folder, so that a job can be found by its name alone.
  static std::string job_name(const TrialFolder& folder) {
    return fmt::format("sextant-{:08x}", static_cast<std::uint32_t>(std::hash<std::string>()(folder.path)));
  }

  std::string sbatch_arguments(const TrialPlan& plan, const TrialFolder& folder, const RunLimits& limits,
                               const std::string& name) const {
    std::string arguments = fmt::format(
        "--job-name={} --nodes={} --no-requeue --open-mode=append --chdir={} --output={}", name, plan.nodes,
        shell_quoted(options_.working_folder), shell_quoted(folder.path + "/" + kOutputName));
    if (std::isfinite(limits.time_s)) {
      // Slurm counts minutes; ours comes first, so that the end is in good order.
      arguments += fmt::format(" --time={}", static_cast<long>(std::ceil(limits.time_s / 60)) + 2);
    }
    return options_.arguments.empty() ? arguments : arguments + " " + options_.arguments;
  }

  /// A trial that was lost with its Sextant may have left a job, whose number was perhaps not written any
  /// more.
  void cancel_lost_job(std::size_t number) const {
    const TrialFolder folder{trial_folder_path(options_.folder, number)};
    if (!std::filesystem::exists(folder.path) || std::filesystem::exists(folder.path + "/result.json"))
      return;
    const SlurmClient client(runner_ ? runner_ : shell_runner(folder.path, kSchedulerLimitS));
    if (const std::string job = text_of(folder.path + "/" + kJobName); !job.empty()) client.cancel(job);
    client.cancel_named(job_name(folder));
  }

  SlurmOptions options_;
  TrialPlanner planner_;
  ProgramRunner runner_;
};

}  // namespace

std::unique_ptr<search::TrialEvaluator> slurm_evaluator(const SlurmOptions& options, TrialPlanner planner,
                                                        ProgramRunner runner) {
  check_command(options.command);
  return std::make_unique<SlurmEvaluator>(options, std::move(planner), std::move(runner));
}

}  // namespace sextant::trials
