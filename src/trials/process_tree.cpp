#include "trials/process_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "trials/process_supervisor.h"

extern char** environ;  // POSIX

namespace sextant::trials {
namespace {

/// Close on exec, and above the descriptors that the supervisor moves things to.
int safe_descriptor(int descriptor) {
  if (descriptor < 0) return descriptor;
  constexpr int kFirst = 10;
  const int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, kFirst);
  close(descriptor);
  return moved;
}

/// Sextant's own environment with additions, as execve wants it.
class Environment {
 public:
  explicit Environment(const std::vector<std::pair<std::string, std::string>>& additions) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string_view text(*entry);
      const std::string_view name = text.substr(0, text.find('='));
      const bool replaced =
          std::ranges::any_of(additions, [&](const auto& own) { return own.first == name; });
      if (!replaced) entries_.emplace_back(text);
    }
    for (const auto& [name, value] : additions) entries_.push_back(name + "=" + value);
    for (std::string& entry : entries_) pointers_.push_back(entry.data());
    pointers_.push_back(nullptr);
  }
  char* const* pointers() const { return pointers_.data(); }

 private:
  std::vector<std::string> entries_;
  std::vector<char*> pointers_;
};

std::int32_t milliseconds(double seconds) {
  return static_cast<std::int32_t>(std::lround(std::clamp(seconds, 0.0, 1e6) * 1000));
}

}  // namespace

ProcessTree::ProcessTree(const ProcessRequest& request) {
  const int output =
      safe_descriptor(open(request.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (output < 0) throw base::OutsideError(request.output + ": cannot be written: " + std::strerror(errno));
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    close(output);
    throw base::OutsideError(std::string("no channel for a trial: ") + std::strerror(errno));
  }
  channel_ = pair[0];
  const int channel = safe_descriptor(pair[1]);
  start(request, channel, output);
  const int status = errno;
  close(output);
  close(channel);
  if (supervisor_ < 0) {
    close(channel_);
    throw base::OutsideError(std::string("no process for a trial: ") + std::strerror(status));
  }
}

void ProcessTree::start(const ProcessRequest& request, int channel, int output) {
  // Everything that the child needs exists before the fork.
  const Environment environment(request.environment);
  std::string shell = "/bin/sh";
  std::string flag = "-c";
  std::string command = request.command;
  char* arguments[] = {shell.data(), flag.data(), command.data(), nullptr};
  const auto workspace = std::make_unique<SupervisorWorkspace>();
  constexpr double kOrphanedGraceS = 5;
  const SupervisorPlan plan{.channel = channel,
                            .output = output,
                            .folder = request.folder.c_str(),
                            .arguments = arguments,
                            .environment = environment.pointers(),
                            .workspace = workspace.get(),
                            .leftover_ms = milliseconds(request.leftover_s),
                            .orphaned_grace_ms = milliseconds(kOrphanedGraceS)};
  supervisor_ = fork();
  if (supervisor_ == 0) supervise(plan);
}

ProcessTree::~ProcessTree() {
  if (!gone_) stop(0);
  close(channel_);
  // Undying processes keep the supervisor; it is buried by init when this process ends.
  int status = 0;
  if (gone_) waitpid(supervisor_, &status, 0);
}

void ProcessTree::listen(int timeout_ms) {
  if (gone_) return;
  pollfd watched{channel_, POLLIN, 0};
  if (poll(&watched, 1, timeout_ms) <= 0) return;
  SupervisorMessage message;
  const ssize_t size = recv(channel_, &message, sizeof message, MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size != static_cast<ssize_t>(sizeof message)) {  // the supervisor itself was killed
    gone_ = true;
    if (!ended_) ended_ = ProcessEnd{ProcessEnd::How::kSignalled, SIGKILL, {}};
    return;
  }
  switch (message.kind) {
    case SupervisorMessage::kNeverBegan:
      ended_ = ProcessEnd{ProcessEnd::How::kNeverBegan, message.value, std::strerror(message.value)};
      break;
    case SupervisorMessage::kExited:
      if (!ended_) ended_ = ProcessEnd{ProcessEnd::How::kExited, message.value, {}};
      break;
    case SupervisorMessage::kSignalled:
      if (!ended_) ended_ = ProcessEnd{ProcessEnd::How::kSignalled, message.value, {}};
      break;
    case SupervisorMessage::kGone:
      gone_ = true;
      break;
    case SupervisorMessage::kStop:
      break;
  }
}

std::optional<ProcessEnd> ProcessTree::ended() {
  if (!ended_) listen(0);
  return ended_;
}

bool ProcessTree::gone() {
  while (!gone_) {
    pollfd watched{channel_, POLLIN, 0};
    if (poll(&watched, 1, 0) <= 0) return false;
    listen(0);
  }
  return true;
}

bool ProcessTree::stop(double grace_s) {
  if (!gone()) {
    const SupervisorMessage message{SupervisorMessage::kStop, milliseconds(grace_s)};
    send(channel_, &message, sizeof message, MSG_NOSIGNAL);
  }
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::duration<double>(grace_s + kUndyingS);
  while (!gone_ && std::chrono::steady_clock::now() < give_up) listen(100);
  return gone_;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

}  // namespace sextant::trials
