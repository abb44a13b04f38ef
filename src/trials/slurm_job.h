// What Slurm's commands print about a job. Pure text in, values out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "backends/log_verdict.h"

namespace sextant::trials {

/// The number in what `sbatch --parsable` printed ("4711" or "4711;north"), or in "Submitted batch job 4711
/// [on cluster north]". Sites print banners around it, with digits of their own, so only a line that is
/// nothing but the number, or the full phrase, counts; the last one wins. Empty when there is none.
std::optional<std::string> submitted_job(std::string_view output);

enum class JobPhase {
  kPending,  ///< waits for resources
  kRunning,
  kEnding,  ///< its processes are being cleaned up
  kEnded,
};

struct JobState {
  JobPhase phase = JobPhase::kPending;
  std::string word;     ///< Slurm's: "RUNNING", "NODE_FAIL"
  std::string reason;   ///< why it waits or ended, "None" as empty
  int exit_status = 0;  ///< squeue does not say it in the same way in all versions: 0 from there
  int signal = 0;
  double run_s = 0;  ///< how long it has run; 0 = not said
};

/// State of `job` in the output of `squeue --json` of any version; empty when the job is not in it. Throws
/// std::runtime_error when the text is no such document.
std::optional<JobState> state_in_squeue(std::string_view json, const std::string& job);

/// State in the output of `scontrol show job --oneliner`; empty when there is none.
std::optional<JobState> state_in_scontrol(std::string_view text);

/// State in the output of `sacct --noheader --parsable2 --format=State,ExitCode`, whose first line is the
/// job.
std::optional<JobState> state_in_sacct(std::string_view text);

/// How an ended job ended, for the verdict.
backends::RunEnd run_end(const JobState& state);

}  // namespace sextant::trials
