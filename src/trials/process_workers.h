// Ranks of a distributed job among the descendants of a process.
//
// When a rank dies, some launchers notice and end the others, some do not, and the job waits for ever
// (deepspeedai/DeepSpeed issue 4100). A rank is a process whose environment says so (RANK of torchrun and
// most launchers, or the variables of Open MPI, PMIx, PMI and Slurm) while its parent's does not say the
// same.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::trials {

struct WorkerProcess {
  pid_t pid = 0;
  std::string rank;  ///< as its variable says
};

/// Ranks among the descendants of `ancestor`, from proc(5). Processes of other users and of other hosts are
/// not seen.
std::vector<WorkerProcess> worker_processes(pid_t ancestor);

/// Remembers ranks from one look to the next. Not thread-safe.
class WorkerWatch {
 public:
  explicit WorkerWatch(pid_t ancestor) : ancestor_(ancestor) {}

  /// Looks at the processes as they are at `now_s`, on any clock that never goes back.
  void look(double now_s);

  struct Death {
    std::string rank;
    double at_s = 0;
  };
  /// The first rank that is gone while another one still runs.
  std::optional<Death> death() const;

 private:
  pid_t ancestor_;
  std::map<pid_t, std::string> alive_;
  std::optional<Death> death_;
};

}  // namespace sextant::trials
