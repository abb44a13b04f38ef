// What the logs of a run in progress say about whether to go on with it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "backends/log_reader.h"
#include "trials/command_output.h"

namespace sextant::trials {

/// When a run is over, apart from ending by itself. All times in seconds of the wall clock.
struct RunLimits {
  double time_s = std::numeric_limits<double>::infinity();
  /// No new step for so long after the first one: it hangs. The first step may take until time_s.
  double hang_s = 600;
  /// An error was printed that ends training (memory, NaN, hardware), and so long after it no step: other
  /// ranks wait for the dead one. 0 = wait for the end.
  double broken_s = 30;
  /// The same after other errors, some of which programs catch and print.
  double error_s = 300;
  /// A rank's process is gone, others live, and so long after it no step. 0 = wait for the end.
  double worker_s = 30;
  /// For the command to end by itself after SIGTERM, before SIGKILL.
  double grace_s = 10;
  /// Steps that suffice: the run is stopped once they are printed. 0 = it ends by itself.
  std::int64_t enough_steps = 0;
  /// Of each log file on disk; the middle of a longer one is cut out.
  std::int64_t output_bytes = std::int64_t{64} << 20;
};

/// Reads the logs of one trial while they grow. Times are seconds since the run started, by any clock that
/// never goes back. Not thread-safe.
class RunWatch {
 public:
  /// `folder` is the trial's (command_output.h).
  RunWatch(const std::string& folder, const backends::LogSettings& settings, const RunLimits& limits);

  void discover() { output_.discover(); }
  void look(double now_s);

  /// Why the run should be stopped now; empty while it should go on.
  std::optional<backends::RunEnd> reason_to_stop(double now_s) const;

  double last_step_s() const { return last_step_s_; }

  /// Reads what is left and judges. Call once.
  backends::LogReport finish(const backends::RunEnd& end);

 private:
  void note_errors(double now_s);

  RunLimits limits_;
  backends::TrainingLog log_;
  CommandOutput output_;
  std::int64_t steps_ = 0;
  double last_step_s_ = 0;
  std::optional<backends::LogSign> broken_by_;
  double broken_s_ = 0;
};

}  // namespace sextant::trials
