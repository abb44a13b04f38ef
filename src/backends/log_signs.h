// Signs of failure in single lines of a log.
//
// A sign is what a framework, an allocator, a launcher or a scheduler prints when it fails, recognised by its
// own wording and place: an exception at the start of a message, an error code, a scheduler's notice. Prose
// that merely speaks of a failure ("lower the batch to avoid running out of memory") is none.
#pragma once

#include <optional>
#include <string_view>

namespace sextant::backends {

/// Strongest first: of a line with several signs the strongest counts. Which of a run's signs names the
/// cause is decided in log_verdict.
enum class LogSign {
  kGpuMemory,      ///< an allocation on the accelerator failed
  kHostMemory,     ///< the host's memory, or its shared memory, is exhausted
  kNotANumber,     ///< the framework stopped because of NaN, infinity or endless overflow
  kNode,           ///< a host, accelerator or link failed, or the scheduler took the nodes away
  kSchedulerTime,  ///< the scheduler's time limit
  kLaunch,         ///< the program could not start: missing command, module, file, device, port
  kConfiguration,  ///< refused: assertions, bad values and arguments
  kCrash,          ///< broke in another way: any other exception, segmentation fault
  kMemoryHint,     ///< the allocator complained of memory mapping; a failure that follows is its doing
  kKilled,         ///< a process was killed with SIGKILL, by whom is not said
  kCollective,     ///< a collective operation timed out: some rank did not arrive
  kFollowOn,       ///< noise of ranks whose peers died
};
inline constexpr std::size_t kLogSigns = 12;

/// The strongest sign of `line`, which is clean (log_lines.h). Linear in the line.
std::optional<LogSign> sign_of(std::string_view line);

}  // namespace sextant::backends
