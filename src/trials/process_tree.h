// A command with everything that it starts, held as one thing that can be stopped for certain.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sextant::trials {

struct ProcessRequest {
  std::string command;  ///< for /bin/sh -c
  std::string folder;   ///< that it runs in
  std::string output;   ///< file that its standard output and error are appended to; standard input is empty
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to Sextant's own, or in its place
  /// After the command has ended, what it left behind may go on for so long.
  double leftover_s = 2;
};

struct ProcessEnd {
  enum class How { kExited, kSignalled, kNeverBegan };
  How how = How::kExited;
  int code = 0;        ///< exit status, signal or errno
  std::string reason;  ///< kNeverBegan: why, for people
};

/// Runs a command below a supervisor (process_supervisor.h). Whatever the command and its descendants do,
/// daemons and processes in sessions of their own included, all of them are gone after stop() or the
/// destructor, or soon after this process has died. What runs elsewhere (other hosts, the container daemon)
/// is out of reach: the command must end that itself when it gets SIGTERM. Linux only. Not thread-safe;
/// several trees may live at once, in any threads.
class ProcessTree {
 public:
  /// Throws base::OutsideError when not even the supervisor can be started, or the output cannot be opened.
  explicit ProcessTree(const ProcessRequest& request);
  ~ProcessTree();
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;

  /// How the command itself ended; empty while it runs. Never waits.
  std::optional<ProcessEnd> ended();

  /// True once nothing of it is left, descendants included. Never waits.
  bool gone();

  /// SIGTERM to all, SIGKILL to what is left after `grace_s`, and returns when nothing is left: true. False
  /// when something does not die for kUndyingS after SIGKILL, which happens to processes that hang in a
  /// driver; the supervisor goes on trying.
  bool stop(double grace_s);
  static constexpr double kUndyingS = 30;

  /// The supervisor, the ancestor of everything.
  int supervisor() const { return supervisor_; }

 private:
  void start(const ProcessRequest& request, int channel, int output);
  void listen(int timeout_ms);

  int channel_ = -1;
  int supervisor_ = -1;
  std::optional<ProcessEnd> ended_;
  bool gone_ = false;
};

/// "SIGKILL" for 9, "signal 40" for one without a name.
std::string signal_name(int signal);

}  // namespace sextant::trials
