// A run of hundreds of ranks that fails prints thousands of error lines, and the last one is seldom the
// cause: one rank runs out of memory, the others wait for it until a watchdog ends them, the launcher reports
// that its children failed. The verdict is found by asking for causes in the order in which one brings about
// the other, over the logs of all ranks:
//
//   memory of the accelerator → memory of the host → not a number → hardware → an allocator's complaint
//   → refusals and crashes → how the processes ended → ranks that waited → noise
//
// Two things keep false alarms out. Signs are strict (log_signs). And what a run survives is no failure: if
// training reached its end, or stopped as planned, error lines are kept as notes only.

#include "backends/log_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "base/units.h"

namespace sextant::backends {
namespace {

using enum RunVerdict;
using How = RunEnd::How;

constexpr std::array<std::pair<RunVerdict, std::string_view>, 13> kWords{{
    {kOk, "ok"},
    {kOutOfMemory, "out_of_memory"},
    {kFragmentation, "fragmentation"},
    {kHostOutOfMemory, "host_out_of_memory"},
    {kNotANumber, "not_a_number"},
    {kNodeFailure, "node_failure"},
    {kLaunchFailure, "launch_failure"},
    {kConfigurationError, "configuration_error"},
    {kCrashed, "crashed"},
    {kHang, "hang"},
    {kTimeOut, "time_out"},
    {kInterrupted, "interrupted"},
    {kTooShort, "too_short"},
}};

/// Asks one question after another until one is answered.
class Judge {
 public:
  Judge(const LogEvidenceSet& logs, const Steady& steady, const RunEnd& end)
      : logs_(logs), steady_(steady), end_(end) {}

  RunJudgement judge() {
    if (end_.how == How::kInterrupted) {
      decide(kInterrupted, {}, "stopped from outside");
    } else if (ended_well()) {
      judge_good_end();
    } else {
      judge_bad_end();
    }
    return std::move(judgement_);
  }

 private:
  bool measured() const { return steady_.step_time_s || steady_.tokens_per_s_per_gpu; }

  /// The run did what it was asked to, whatever else it printed.
  bool ended_well() const {
    if (end_.how == How::kEnoughSteps) return true;
    if (logs_.steps == 0) return false;
    if (end_.how == How::kTimeLimit) return measured() && still_stepping() && !broke_off();
    const bool reached_end =
        logs_.training_ended || (logs_.total_steps && logs_.last_step >= *logs_.total_steps);
    if (end_.how == How::kUnknown) return reached_end || !broke_off();
    if (end_.how == How::kWorkerDied || end_.how == How::kBroken) return reached_end && !broke_off();
    if (end_.how != How::kExited) return false;
    // Errors of the clean-up after training do not change the pace that was measured.
    return reached_end ? end_.exit_status == 0 || !broke_off() : end_.exit_status == 0 && !broke_off();
  }

  /// The last thing that a log says is an error, and one that ends training. An ordinary exception after
  /// measured steps is not enough: interpreters print some while they shut down.
  bool broke_off() const {
    return std::ranges::any_of(logs_.findings, [&](const LogFinding& finding) {
      if (finding.survived) return false;
      if (finding.sign < LogSign::kSchedulerTime) return true;
      return finding.sign <= LogSign::kCrash && (!measured() || end_.how == How::kUnknown);
    });
  }

  /// Stopped at the limit while steps still came: it was only slow, or told to go on for ever. Three steps of
  /// the slowest kind without a sign of life is a hang.
  bool still_stepping() const {
    if (!end_.since_last_step_s) return true;
    constexpr double kPatienceSteps = 3;
    constexpr double kPatienceS = 10;  // buffers of pipes and shared file systems
    const double step_s = steady_.step_time_s ? steady_.step_time_s->largest : 0;
    return *end_.since_last_step_s <= kPatienceSteps * step_s + kPatienceS;
  }

  void judge_good_end() {
    if (logs_.broken_loss) {
      decide(kNotANumber, logs_.broken_loss->evidence, "the loss became NaN or infinite");
      return;
    }
    for (const LogFinding& finding : logs_.findings) {
      if (finding.sign > LogSign::kCrash || judgement_.notes.size() >= 3) continue;
      judgement_.notes.push_back(fmt::format("training went on after {}:{}: {}", finding.evidence.file,
                                             finding.evidence.line, finding.evidence.text));
    }
    if (end_.how == How::kTimeLimit) {
      judgement_.notes.push_back(fmt::format("stopped at the time limit after {} steps", logs_.steps));
    }
    if (end_.how == How::kExited && end_.exit_status != 0) {
      judgement_.notes.push_back(
          fmt::format("ended with exit status {} after its last step", end_.exit_status));
    }
    if (!measured()) {
      decide(kTooShort, logs_.last_line,
             fmt::format("{} steps were printed, too few to tell the pace: the first is never counted",
                         logs_.steps));
    }
  }

  void judge_bad_end() {
    if (memory_ran_out() || host_memory_ran_out() || became_not_a_number() || node_failed()) return;
    if (allocator_complained() || refused_or_crashed()) return;
    if (never_started() || was_killed() || took_too_long() || ranks_waited()) return;
    broke_without_a_word();
  }

  /// What training went on from did not end it.
  const LogFinding* find(LogSign sign) const {
    const auto found = std::ranges::find_if(
        logs_.findings, [&](const LogFinding& finding) { return finding.sign == sign && !finding.survived; });
    return found == logs_.findings.end() ? nullptr : &*found;
  }

  void decide(RunVerdict verdict, const LogEvidence& evidence, std::string message,
              std::string suggestion = {}) {
    judgement_.verdict = verdict;
    judgement_.evidence = evidence;
    judgement_.message = std::move(message);
    judgement_.suggestion = std::move(suggestion);
  }

  bool memory_ran_out() {
    const LogFinding* finding = find(LogSign::kGpuMemory);
    if (finding == nullptr) return false;
    if (is_fragmentation()) {
      decide(
          kFragmentation, finding->evidence,
          "the allocator held enough memory for the request, but in pieces",
          "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PYTORCH_HIP_ALLOC_CONF on ROCm) and run the "
          "same layout again");
    } else {
      decide(kOutOfMemory, finding->evidence, "the accelerator's memory did not suffice");
    }
    return true;
  }

  /// Every rank that says how much it held was fragmented; where the message does not say, the peaks that
  /// the log printed before stand in.
  bool is_fragmentation() const {
    bool fragmented = false;
    for (FailedAllocation allocation : logs_.failed_allocations) {
      if (!allocation.allocated_bytes || !allocation.reserved_bytes) {
        allocation.allocated_bytes = logs_.memory.allocated_bytes;
        allocation.reserved_bytes = logs_.memory.reserved_bytes;
      }
      const auto answer = allocation.fragmented();
      if (answer && !*answer) return false;
      fragmented = fragmented || answer.value_or(false);
    }
    return fragmented;
  }

  bool host_memory_ran_out() {
    const LogFinding* finding = find(LogSign::kHostMemory);
    if (finding == nullptr) return false;
    decide(kHostOutOfMemory, finding->evidence, "the host's memory did not suffice");
    return true;
  }

  bool became_not_a_number() {
    const LogFinding* finding = find(LogSign::kNotANumber);
    if (finding == nullptr && logs_.broken_loss) finding = &*logs_.broken_loss;
    if (finding == nullptr) return false;
    decide(kNotANumber, finding->evidence, "the loss became NaN or infinite");
    return true;
  }

  bool node_failed() {
    const LogFinding* finding = find(LogSign::kNode);
    if (finding != nullptr) {
      decide(kNodeFailure, finding->evidence, "a node, accelerator or link failed");
    } else if (end_.how == How::kNodeFailed) {
      decide(kNodeFailure, {}, end_.detail.empty() ? "a node failed" : "a node failed: " + end_.detail);
    } else {
      return false;
    }
    return true;
  }

  /// A complaint about memory mapping alone is a warning; what broke after it was its doing.
  bool allocator_complained() {
    const LogFinding* hint = find(LogSign::kMemoryHint);
    if (hint == nullptr) return false;
    const LogFinding* cause = first_cause();
    if (cause != nullptr && (cause->evidence.file != hint->evidence.file ||
                             cause->evidence.line < hint->evidence.line || cause->sign != LogSign::kCrash)) {
      return false;
    }
    decide(kOutOfMemory, hint->evidence, "the allocator could not map more of the accelerator's memory");
    return true;
  }

  /// The first error that no step followed. Failed imports are often caught and only mentioned, so any other
  /// error comes before them.
  const LogFinding* first_cause() const {
    const LogFinding* best = nullptr;
    const auto rank = [](const LogFinding& finding) {
      return std::pair(finding.survived, finding.sign == LogSign::kLaunch);
    };
    for (const LogFinding& finding : logs_.findings) {
      if (finding.sign != LogSign::kLaunch && finding.sign != LogSign::kConfiguration &&
          finding.sign != LogSign::kCrash) {
        continue;
      }
      if (best == nullptr || rank(finding) < rank(*best)) best = &finding;
    }
    return best;
  }

  bool refused_or_crashed() {
    const LogFinding* cause = first_cause();
    if (cause == nullptr) return false;
    const bool before_training = logs_.steps == 0;
    if (cause->sign == LogSign::kLaunch && before_training) {
      decide(kLaunchFailure, cause->evidence, "the program could not start");
    } else if (cause->sign == LogSign::kConfiguration && before_training) {
      decide(kConfigurationError, cause->evidence, "the framework refused the configuration");
    } else {
      decide(kCrashed, cause->evidence, "the program broke with an error");
    }
    return true;
  }

  bool never_started() {
    // POSIX shells: 126 not executable, 127 not found.
    const bool shell = end_.how == How::kExited && (end_.exit_status == 126 || end_.exit_status == 127);
    if (end_.how == How::kUnknown && logs_.steps == 0) {
      decide(kLaunchFailure, logs_.last_line, "no training step was printed");
    } else if (end_.how == How::kNeverBegan) {
      decide(kLaunchFailure, logs_.last_line,
             end_.detail.empty() ? "could not be started" : "could not be started: " + end_.detail);
    } else if (shell && logs_.steps == 0) {
      decide(kLaunchFailure, logs_.last_line,
             fmt::format("exit status {}: the command was not found or is not executable", end_.exit_status));
    } else if (end_.how == How::kExited && end_.exit_status == 0 && logs_.steps == 0) {
      decide(kLaunchFailure, logs_.last_line,
             logs_.last_line.line == 0 ? "ended with success and printed nothing"
                                       : "ended with success, but printed no training step");
    } else {
      return false;
    }
    return true;
  }

  bool was_killed() {
    const bool exit_137 = end_.how == How::kExited && end_.exit_status == 128 + SIGKILL;
    const bool signalled = end_.how == How::kSignalled && end_.signal == SIGKILL;
    const bool ours = end_.how == How::kTimeLimit || end_.how == How::kNoProgress ||
                      end_.how == How::kBroken || end_.how == How::kWorkerDied;
    const LogFinding* finding = ours ? nullptr : find(LogSign::kKilled);
    if (!exit_137 && !signalled && finding == nullptr) return false;
    decide(kHostOutOfMemory, finding == nullptr ? logs_.last_line : finding->evidence,
           "a process was killed (SIGKILL, exit status 137), as the kernel does when the host's memory is "
           "exhausted");
    return true;
  }

  bool took_too_long() {
    const LogFinding* scheduler = find(LogSign::kSchedulerTime);
    const LogEvidence& evidence = scheduler == nullptr ? logs_.last_line : scheduler->evidence;
    if (end_.how == How::kNoProgress) {
      decide(kHang, evidence,
             end_.since_last_step_s
                 ? fmt::format("no new step for {}", base::format_seconds(*end_.since_last_step_s))
                 : "no new step");
    } else if (end_.how == How::kTimeLimit && logs_.steps > 0) {
      decide(kHang, evidence, "steps stopped coming before the time limit");
    } else if (end_.how == How::kTimeLimit) {
      decide(kTimeOut, evidence, "no step was printed within the time limit");
    } else if (scheduler != nullptr) {
      decide(kTimeOut, evidence, "the scheduler's time limit was reached");
    } else {
      return false;
    }
    if (const LogFinding* collective = find(LogSign::kCollective)) {
      judgement_.notes.push_back(fmt::format("ranks waited in a collective: {}:{}", collective->evidence.file,
                                             collective->evidence.line));
    }
    return true;
  }

  bool ranks_waited() {
    const LogFinding* finding = find(LogSign::kCollective);
    if (finding == nullptr) return false;
    decide(kHang, finding->evidence, "ranks waited in a collective operation until it timed out");
    return true;
  }

  void broke_without_a_word() {
    const LogFinding* noise = find(LogSign::kFollowOn);
    const LogEvidence& evidence = noise == nullptr ? logs_.last_line : noise->evidence;
    std::string how = "the logs do not say why it ended";
    if (end_.how == How::kWorkerDied) {
      how = end_.detail.empty() ? "a worker process died and the others did not end" : end_.detail;
    } else if (end_.how == How::kBroken && !end_.detail.empty()) {
      how = end_.detail;
    } else if (end_.how == How::kExited) {
      how = fmt::format("ended with exit status {}, and the logs do not say why", end_.exit_status);
    } else if (end_.how == How::kSignalled) {
      how = fmt::format("ended by signal {}, and the logs do not say why", end_.signal);
    }
    const bool silent = logs_.steps == 0 && logs_.last_line.line == 0;
    decide(silent && end_.how == How::kExited ? kLaunchFailure : kCrashed, evidence, how);
  }

  const LogEvidenceSet& logs_;
  const Steady& steady_;
  const RunEnd& end_;
  RunJudgement judgement_;
};

}  // namespace

std::string_view word(RunVerdict verdict) {
  return std::ranges::find(kWords, verdict, &std::pair<RunVerdict, std::string_view>::first)->second;
}

RunJudgement judge_run(const LogEvidenceSet& logs, const Steady& steady, const RunEnd& end) {
  return Judge(logs, steady, end).judge();
}

}  // namespace sextant::backends
