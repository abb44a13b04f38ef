// One command, watched from its start until nothing of it is left.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "backends/log_reader.h"
#include "trials/command_watch.h"

namespace sextant::trials {

struct CommandRun {
  std::string command;  ///< for /bin/sh -c
  std::string folder;   ///< of the trial (command_output.h)
  std::string working_folder;
  std::vector<std::pair<std::string, std::string>> environment;
  backends::LogSettings settings;
  RunLimits limits;
};

struct CommandResult {
  backends::LogReport report;
  backends::RunEnd end;
  bool all_gone = true;  ///< false: a process did not die, even after SIGKILL
};

/// Runs the command to its end. `stop` is asked ten times a second; soon after it says yes the run is stopped
/// and its verdict is kInterrupted. Throws base::OutsideError when nothing can be run or written at all.
CommandResult run_command(const CommandRun& run, const std::function<bool()>& stop);

}  // namespace sextant::trials
