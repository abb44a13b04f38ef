// Slurm's commands, run and understood.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "trials/slurm_job.h"

namespace sextant::trials {

struct ProgramOutput {
  int status = 0;        ///< exit status; 128 + signal; kAbandoned
  std::string output{};  ///< standard output and error
};
inline constexpr int kAbandoned = -1;

/// Runs a shell command and waits for it. When `abandon` says yes it is ended early.
using ProgramRunner =
    std::function<ProgramOutput(const std::string& command, const std::function<bool()>& abandon)>;

/// Runs for real, in `folder`, where it also keeps the output; commands that take longer than `limit_s` are
/// abandoned.
ProgramRunner shell_runner(const std::string& folder, double limit_s);

class SlurmClient {
 public:
  explicit SlurmClient(ProgramRunner runner) : runner_(std::move(runner)) {}

  struct Submission {
    std::optional<std::string> job{};
    std::string error{};  ///< what went wrong, when there is no job
  };
  /// `arguments` and `script` as a shell wants them.
  Submission submit(const std::string& arguments, const std::string& script) const;

  struct Look {
    bool answered = false;            ///< false: the controller cannot be asked now
    std::optional<JobState> state{};  ///< empty: the controller does not know the job any more
  };
  /// squeue, and for jobs that it has forgotten scontrol, then sacct (both may be missing or switched off).
  Look look(const std::string& job, const std::function<bool()>& abandon) const;

  /// True when the scheduler took the request.
  bool cancel(const std::string& job) const;
  bool cancel_named(const std::string& name) const;

 private:
  std::optional<JobState> ask_queue(const std::string& job, const std::function<bool()>& abandon) const;

  ProgramRunner runner_;
};

}  // namespace sextant::trials
