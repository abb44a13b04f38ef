#include "trials/command_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "trials/process_tree.h"
#include "trials/process_workers.h"

namespace sextant::trials {
namespace {

using How = backends::RunEnd::How;

constexpr double kLookS = 0.1;       // between two looks at output and processes
constexpr double kDiscoverS = 2;     // between two searches for new files and ranks
constexpr double kInterruptedS = 3;  // grace when somebody waits at a terminal
constexpr double kLeftoverS = 2;     // for what a command leaves behind to end by itself

/// Looks at a command again and again until there is a reason to end it.
class RunningCommand {
 public:
  RunningCommand(const CommandRun& run, const std::function<bool()>& stop)
      : run_(run),
        stop_(stop),
        watch_(run.folder, run.settings, run.limits),
        tree_({.command = run.command,
               .folder = run.working_folder,
               .output = run.folder + "/" + kOutputName,
               .environment = run.environment,
               .leftover_s = kLeftoverS + run.limits.grace_s}),
        workers_(tree_.supervisor()) {}

  CommandResult wait() {
    CommandResult result;
    std::optional<backends::RunEnd> end;
    while (!(end = look())) std::this_thread::sleep_for(std::chrono::duration<double>(kLookS));
    result.end = *end;
    result.end.duration_s = now_s();
    const bool by_itself = end->how == How::kExited || end->how == How::kSignalled;
    if (by_itself) wait_for_leftovers();
    if (!by_itself) result.end.since_last_step_s = now_s() - watch_.last_step_s();
    const bool hurry = end->how == How::kInterrupted;
    result.all_gone = tree_.stop(hurry ? std::min(kInterruptedS, run_.limits.grace_s) : run_.limits.grace_s);
    result.report = watch_.finish(result.end);
    return result;
  }

 private:
  double now_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  void wait_for_leftovers() {
    const double end = now_s() + kLeftoverS;
    while (!tree_.gone() && now_s() < end && !stop_())
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  std::optional<backends::RunEnd> look() {
    if (stop_()) return backends::RunEnd{How::kInterrupted};
    const double now = now_s();
    // Asked before the logs are read, so that a run that has ended is read to its end.
    const std::optional<ProcessEnd> ended = tree_.ended();
    if (now >= next_discovery_s_) {
      watch_.discover();
      workers_.look(now);
      next_discovery_s_ = now + kDiscoverS;
    }
    watch_.look(now);
    if (ended) return end_of(*ended);
    if (const auto reason = watch_.reason_to_stop(now)) return reason;
    return worker_died(now);
  }

  static backends::RunEnd end_of(const ProcessEnd& ended) {
    switch (ended.how) {
      case ProcessEnd::How::kExited:
        return {How::kExited, ended.code};
      case ProcessEnd::How::kSignalled:
        return {How::kSignalled, 0, ended.code, signal_name(ended.code)};
      case ProcessEnd::How::kNeverBegan:
        return {How::kNeverBegan, 0, 0, ended.reason};
    }
    return {};
  }

  std::optional<backends::RunEnd> worker_died(double now) const {
    const auto death = workers_.death();
    const double patience_s = run_.limits.worker_s;
    if (!death || patience_s <= 0) return std::nullopt;
    if (now - std::max(death->at_s, watch_.last_step_s()) < patience_s) return std::nullopt;
    return backends::RunEnd{
        How::kWorkerDied, 0, 0,
        fmt::format("the process of rank {} died and the others did not end", death->rank)};
  }

  const CommandRun& run_;
  const std::function<bool()>& stop_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  RunWatch watch_;
  ProcessTree tree_;
  WorkerWatch workers_;
  double next_discovery_s_ = 0;
};

}  // namespace

CommandResult run_command(const CommandRun& run, const std::function<bool()>& stop) {
  return RunningCommand(run, stop).wait();
}

}  // namespace sextant::trials
