#include "trials/slurm_client.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "trials/command_template.h"
#include "trials/process_tree.h"

namespace sextant::trials {
namespace {

bool never() { return false; }

/// The controller answered that it knows no such job, which is an answer.
bool is_unknown_job(const std::string& output) { return output.find("Invalid job id") != std::string::npos; }

ProgramOutput run_in_shell(const std::string& command, const std::string& folder, double limit_s,
                           const std::function<bool()>& abandon) {
  const std::string path = folder + "/scheduler.tmp";
  std::error_code status;
  std::filesystem::remove(path, status);
  ProgramOutput result;
  {
    ProcessTree tree(
        {.command = command, .folder = folder, .output = path, .environment = {}, .leftover_s = 0});
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
    std::optional<ProcessEnd> ended;
    while (!(ended = tree.ended()) && !abandon() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (!ended) {
      result.status = kAbandoned;
    } else {
      result.status = ended->how == ProcessEnd::How::kSignalled ? 128 + ended->code : ended->code;
    }
  }
  result.output = base::read_file(path);
  std::filesystem::remove(path, status);
  return result;
}

}  // namespace

ProgramRunner shell_runner(const std::string& folder, double limit_s) {
  return [folder, limit_s](const std::string& command, const std::function<bool()>& abandon) {
    return run_in_shell(command, folder, limit_s, abandon);
  };
}

SlurmClient::Submission SlurmClient::submit(const std::string& arguments, const std::string& script) const {
  const ProgramOutput result = runner_("sbatch --parsable " + arguments + " " + script, never);
  Submission submission;
  if (result.status == 0) submission.job = submitted_job(result.output);
  if (submission.job) return submission;
  const std::string output(base::trim(result.output));
  if (result.status == 0) {
    submission.error = output.empty() ? "sbatch printed nothing" : "sbatch printed no job number: " + output;
  } else if (result.status == 127) {
    submission.error = "sbatch was not found";
  } else {
    submission.error = output.empty() ? "sbatch failed without a word" : output;
  }
  return submission;
}

SlurmClient::Look SlurmClient::look(const std::string& job, const std::function<bool()>& abandon) const {
  const std::optional<JobState> queued = ask_queue(job, abandon);
  if (queued && queued->phase != JobPhase::kEnded) return {true, queued};
  // How it ended, scontrol says in the same way in all versions.
  const ProgramOutput control = runner_("scontrol show job --oneliner " + job, abandon);
  if (auto state = state_in_scontrol(control.output)) return {true, std::move(state)};
  if (queued) return {true, queued};
  // An absent controller makes squeue print an empty queue with exit status 0 (22.05): only this is an
  // answer.
  if (!is_unknown_job(control.output)) return {};
  const ProgramOutput accounting =
      runner_("sacct --noheader --parsable2 --format=State,ExitCode --jobs=" + job + " 2>/dev/null", abandon);
  return {true, state_in_sacct(accounting.output)};
}

std::optional<JobState> SlurmClient::ask_queue(const std::string& job,
                                               const std::function<bool()>& abandon) const {
  // Errors would spoil the document.
  const ProgramOutput queue = runner_("squeue --json --jobs=" + job + " 2>/dev/null", abandon);
  if (queue.status != 0) return std::nullopt;
  try {
    return state_in_squeue(queue.output, job);
  } catch (const std::runtime_error&) {
    return std::nullopt;  // built without JSON: scontrol knows as much
  }
}

bool SlurmClient::cancel(const std::string& job) const {
  const ProgramOutput result = runner_("scancel " + job, never);
  return result.status == 0 || is_unknown_job(result.output);
}

bool SlurmClient::cancel_named(const std::string& name) const {
  return runner_("scancel --name=" + shell_quoted(name), never).status == 0;
}

}  // namespace sextant::trials
