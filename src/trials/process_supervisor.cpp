#include "trials/process_supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

namespace sextant::trials {
namespace {

constexpr int kChannel = 3;  // where supervise() moves its descriptors
constexpr int kOutput = 4;
constexpr int kPollMs = 20;

std::int64_t now_ms() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1000000;
}

void send_message(SupervisorMessage::Kind kind, std::int32_t value) {
  const SupervisorMessage message{kind, value};
  send(kChannel, &message, sizeof message, MSG_NOSIGNAL);
}

/// Sets every signal to its default and unblocks all.
void reset_signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

void ignore(int signal) {
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  sigaction(signal, &action, nullptr);
}

/// Closes everything from `first` on.
void close_from(int first) {
  if (syscall(SYS_close_range, static_cast<unsigned>(first), UINT_MAX, 0U) == 0) return;
  for (int descriptor = first; descriptor < 65536; ++descriptor) close(descriptor);  // before Linux 5.9
}

/// The kernel's layout of SYS_getdents64, see getdents(2).
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t length;
  std::uint8_t type;
  char name[1];
};

/// A process id, or 0 for a name that is none.
pid_t pid_of(const char* name) {
  pid_t pid = 0;
  for (; *name != '\0'; ++name) {
    if (*name < '0' || *name > '9' || pid > static_cast<pid_t>(SupervisorWorkspace::kLargestPid)) return 0;
    pid = pid * 10 + (*name - '0');
  }
  return pid;
}

/// Writes "/proc/<pid>/stat" to `path`, which holds at least 32 characters.
void stat_path(pid_t pid, char* path) {
  char digits[16];
  int count = 0;
  for (; pid > 0; pid /= 10) digits[count++] = static_cast<char>('0' + pid % 10);
  std::memcpy(path, "/proc/", 6);
  path += 6;
  while (count > 0) *path++ = digits[--count];
  std::memcpy(path, "/stat", 6);
}

/// The parent of `pid` from proc(5) stat, "12 (name) S 3 …"; the name may hold anything. 0 when it is gone.
pid_t parent_of(pid_t pid, SupervisorWorkspace& workspace) {
  char path[32];
  stat_path(pid, path);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t size = read(file, workspace.text.data(), workspace.text.size() - 1);
  close(file);
  if (size <= 0) return 0;
  const char* text = workspace.text.data();
  ssize_t at = size - 1;
  while (at > 0 && text[at] != ')') --at;
  at += 4;  // ") S "
  pid_t parent = 0;
  for (; at < size && text[at] >= '0' && text[at] <= '9'; ++at) parent = parent * 10 + (text[at] - '0');
  return parent;
}

/// Fills pids and parents with the whole process table; returns how many there are.
std::size_t read_process_table(SupervisorWorkspace& workspace) {
  const int folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return 0;
  std::size_t count = 0;
  while (true) {
    const long size = syscall(SYS_getdents64, folder, workspace.entries.data(), workspace.entries.size());
    if (size <= 0) break;
    for (long at = 0; at < size;) {
      const char* entry = workspace.entries.data() + at;
      std::uint16_t length = 0;
      std::memcpy(&length, entry + offsetof(DirectoryEntry, length), sizeof length);
      const pid_t pid = pid_of(entry + offsetof(DirectoryEntry, name));
      if (pid > 0 && count < SupervisorWorkspace::kProcesses) {
        workspace.pids[count] = pid;
        workspace.parents[count] = parent_of(pid, workspace);
        ++count;
      }
      at += length;
    }
  }
  close(folder);
  return count;
}

bool is_marked(const SupervisorWorkspace& workspace, pid_t pid) {
  const auto index = static_cast<std::size_t>(pid);
  return index <= SupervisorWorkspace::kLargestPid && ((workspace.marked[index / 8] >> (index % 8)) & 1) != 0;
}

void mark(SupervisorWorkspace& workspace, pid_t pid) {
  const auto index = static_cast<std::size_t>(pid);
  if (index > SupervisorWorkspace::kLargestPid) return;
  workspace.marked[index / 8] = static_cast<std::uint8_t>(workspace.marked[index / 8] | (1U << (index % 8)));
}

/// Sends `signal` to every descendant of this process.
void signal_descendants(SupervisorWorkspace& workspace, int signal) {
  workspace.marked.fill(0);
  const pid_t self = getpid();
  mark(workspace, self);
  const std::size_t count = read_process_table(workspace);
  // A parent usually has the smaller id, so one or two passes find all.
  for (bool found = true; found;) {
    found = false;
    for (std::size_t i = 0; i < count; ++i) {
      if (is_marked(workspace, workspace.pids[i]) || !is_marked(workspace, workspace.parents[i])) continue;
      mark(workspace, workspace.pids[i]);
      found = true;
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const pid_t pid = workspace.pids[i];
    if (pid != self && is_marked(workspace, pid)) kill(pid, signal);
  }
}

/// The command's own process: a session of its own, nothing open but its output.
[[noreturn]] void become_command(const SupervisorPlan& plan) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // if somebody kills the supervisor itself
  setsid();
  reset_signals();
  const int nothing = open("/dev/null", O_RDONLY);
  const bool ready = nothing >= 0 && dup2(nothing, 0) == 0 && dup2(kOutput, 1) == 1 &&
                     dup2(kOutput, 2) == 2 && chdir(plan.folder) == 0 &&
                     fcntl(kChannel, F_SETFD, FD_CLOEXEC) == 0;
  if (ready) {
    close_from(kOutput);
    execve(plan.arguments[0], plan.arguments, plan.environment);
  }
  send_message(SupervisorMessage::kNeverBegan, errno);
  _exit(127);
}

class Supervisor {
 public:
  explicit Supervisor(const SupervisorPlan& plan) : plan_(plan) {}

  [[noreturn]] void run() {
    command_ = fork();
    if (command_ == 0) become_command(plan_);
    if (command_ < 0) {
      send_message(SupervisorMessage::kNeverBegan, errno);
      _exit(1);
    }
    while (true) {
      listen();
      if (!reap()) {
        send_message(SupervisorMessage::kGone, 0);
        _exit(0);
      }
      const std::int64_t now = now_ms();
      if (ended_ms_ >= 0 && now >= ended_ms_ + plan_.leftover_ms) stop(0);
      if (!stopping_) continue;
      if (now >= kill_at_ms_) signal_descendants(*plan_.workspace, SIGKILL);
    }
  }

 private:
  /// Waits a little for a message. A closed channel means that Sextant is gone.
  void listen() {
    pollfd watched{orphaned_ ? -1 : kChannel, POLLIN, 0};
    if (poll(&watched, 1, kPollMs) <= 0) return;
    SupervisorMessage message;
    const ssize_t size = recv(kChannel, &message, sizeof message, MSG_DONTWAIT);
    if (size == static_cast<ssize_t>(sizeof message) && message.kind == SupervisorMessage::kStop) {
      stop(message.value);
    } else if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
      orphaned_ = true;
      stop(plan_.orphaned_grace_ms);
    }
  }

  /// Buries the dead. False when no child is left, which means no descendant either.
  bool reap() {
    while (true) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG);
      if (pid == 0 || (pid < 0 && errno == EINTR)) return true;
      if (pid < 0) return false;
      if (pid != command_) continue;
      ended_ms_ = now_ms();
      if (WIFEXITED(status)) send_message(SupervisorMessage::kExited, WEXITSTATUS(status));
      if (WIFSIGNALED(status)) send_message(SupervisorMessage::kSignalled, WTERMSIG(status));
    }
  }

  /// Later calls can only bring the end nearer.
  void stop(std::int32_t grace_ms) {
    const std::int64_t kill_at = now_ms() + grace_ms;
    if (!stopping_) {
      signal_descendants(*plan_.workspace, SIGTERM);
      signal_descendants(*plan_.workspace, SIGCONT);  // the stopped ones must be able to hear it
      kill_at_ms_ = kill_at;
    }
    stopping_ = true;
    if (kill_at < kill_at_ms_) kill_at_ms_ = kill_at;
  }

  const SupervisorPlan& plan_;
  pid_t command_ = -1;
  std::int64_t ended_ms_ = -1;
  std::int64_t kill_at_ms_ = 0;
  bool stopping_ = false;
  bool orphaned_ = false;
};

}  // namespace

void supervise(const SupervisorPlan& plan) noexcept {
  setsid();
  prctl(PR_SET_NAME, "sextant-trial");  // so that people see in ps what it is
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  reset_signals();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ignore(signal);
  // Both descriptors were made above kOutput, so neither move overwrites the other.
  if (dup2(plan.channel, kChannel) < 0 || dup2(plan.output, kOutput) < 0) _exit(1);
  close_from(kOutput + 1);
  Supervisor(plan).run();
}

}  // namespace sextant::trials
