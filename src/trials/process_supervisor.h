// The small process between Sextant and a trial's command, which makes sure that nothing of a trial survives.
//
// It is the "subreaper" of everything the command starts (prctl(2), PR_SET_CHILD_SUBREAPER): a process whose
// parent ends becomes its child, wherever it moved its session or process group, so all descendants can be
// found and killed. When Sextant itself dies, however suddenly, the channel closes and the supervisor kills
// the trial. Used by process_tree only.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace sextant::trials {

/// What travels over the channel, a stream socket: one way how the command ended, the other way to stop it.
struct SupervisorMessage {
  enum Kind : std::int32_t {
    kNeverBegan,  ///< value: errno of the system call that failed
    kExited,      ///< the command; value: exit status
    kSignalled,   ///< the command; value: signal
    kGone,        ///< nothing of the trial is left; the supervisor ends
    kStop,        ///< to the supervisor: SIGTERM now, SIGKILL after `value` milliseconds
  };
  Kind kind = kGone;
  std::int32_t value = 0;
};

/// Memory for walking the process table, reserved before the fork.
struct SupervisorWorkspace {
  static constexpr std::size_t kProcesses = 65536;
  static constexpr std::size_t kLargestPid = 4194304;  ///< Linux: PID_MAX_LIMIT
  std::array<pid_t, kProcesses> pids;
  std::array<pid_t, kProcesses> parents;
  std::array<std::uint8_t, kLargestPid / 8 + 1> marked;
  std::array<char, 32768> entries;
  std::array<char, 1024> text;
};

struct SupervisorPlan {
  int channel = -1;
  int output = -1;  ///< becomes the command's standard output and error
  const char* folder = nullptr;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  SupervisorWorkspace* workspace = nullptr;
  std::int32_t leftover_ms = 0;        ///< for processes that the command leaves behind to end by themselves
  std::int32_t orphaned_grace_ms = 0;  ///< between SIGTERM and SIGKILL when Sextant has died
};

/// Runs in a forked child and never returns. Sextant has threads, so between fork and exec only system calls
/// are allowed that are safe in signal handlers: no allocation, no locks, no exceptions.
[[noreturn]] void supervise(const SupervisorPlan& plan) noexcept;

}  // namespace sextant::trials
