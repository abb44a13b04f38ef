// How a run ended: one kind, and the line that shows it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/log_allocation.h"
#include "backends/log_signs.h"
#include "backends/log_steady.h"
#include "backends/log_step.h"

namespace sextant::backends {

enum class RunVerdict {
  kOk,
  kOutOfMemory,         ///< the accelerator's memory is too small for this configuration
  kFragmentation,       ///< its memory would do, but the allocator holds it in pieces
  kHostOutOfMemory,     ///< the host's memory, or something killed a process with SIGKILL
  kNotANumber,          ///< the loss became NaN or infinite
  kNodeFailure,         ///< a host, accelerator, link or the scheduler; says nothing of the configuration
  kLaunchFailure,       ///< training never started
  kConfigurationError,  ///< the framework refused the configuration
  kCrashed,             ///< broke in another way
  kHang,                ///< steps stopped coming, or ranks waited for one another in vain
  kTimeOut,             ///< no result within the time limit
  kInterrupted,         ///< stopped from outside
  kTooShort,            ///< ran, but printed too few steps to tell its pace
};

/// "ok", "out_of_memory", "fragmentation", "host_out_of_memory", "not_a_number", "node_failure",
/// "launch_failure", "configuration_error", "crashed", "hang", "time_out", "interrupted", "too_short".
std::string_view word(RunVerdict verdict);

/// How the processes of a run ended, as far as whoever ran them knows.
struct RunEnd {
  enum class How {
    kUnknown,      ///< only logs are there
    kExited,       ///< by itself, with `exit_status`
    kSignalled,    ///< by a signal that was not ours, `signal`
    kNeverBegan,   ///< could not be started
    kEnoughSteps,  ///< stopped by us, as planned: it had printed the steps that were asked for
    kTimeLimit,    ///< stopped by us at the time limit
    kNoProgress,   ///< stopped by us: no new step for too long
    kBroken,       ///< stopped by us: an error was printed and no step followed
    kWorkerDied,   ///< stopped by us: a worker died and the rest did not end
    kNodeFailed,   ///< the scheduler says so
    kInterrupted,  ///< stopped by us because somebody asked
  };
  How how = How::kUnknown;
  int exit_status = 0;
  int signal = 0;
  std::string detail{};                       ///< one phrase more, such as the scheduler's reason
  double duration_s = 0;                      ///< 0 = not known
  std::optional<double> since_last_step_s{};  ///< when we stopped it
};

/// Where a log shows something.
struct LogEvidence {
  std::string file;
  std::int64_t line = 0;  ///< from 1; 0 = not a line of a log
  std::string text;       ///< the line, shortened
};

struct LogFinding {
  LogSign sign = LogSign::kFollowOn;
  LogEvidence evidence;
  bool survived = false;  ///< steps followed in the same file
};

/// What all logs of a run say, before its end is known.
struct LogEvidenceSet {
  std::vector<LogFinding> findings;  ///< by file name, then line
  std::vector<FailedAllocation> failed_allocations;
  std::optional<LogFinding> broken_loss;  ///< the first step with a NaN or infinite loss
  LogEvidence last_line;                  ///< of the first file that has any
  std::size_t steps = 0;
  std::int64_t last_step = 0;
  std::optional<std::int64_t> total_steps;
  bool training_ended = false;
  LogMemory memory;
};

struct RunJudgement {
  RunVerdict verdict = RunVerdict::kOk;
  LogEvidence evidence;            ///< empty for kOk
  std::string message;             ///< one sentence for people; empty for kOk
  std::string suggestion;          ///< what to try before changing the layout, or empty
  std::vector<std::string> notes;  ///< what was seen and did not decide
};

/// The cause that explains the most. An allocation that failed on any rank outranks everything that other
/// ranks print afterwards; causes outrank time-outs, time-outs outrank the noise of dying peers. After a
/// successful end, errors that training went on from do not count.
RunJudgement judge_run(const LogEvidenceSet& logs, const Steady& steady, const RunEnd& end);

}  // namespace sextant::backends
