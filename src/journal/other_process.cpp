#include "journal/other_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <exception>

namespace sextant::journal {

std::string in_other_process(const std::function<std::string()>& body, bool as_nobody) {
  OtherProcess process([&](const OtherProcess::WriteLine& write) {
    constexpr uid_t kNobody = 65534;
    if (as_nobody && getuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0))
      return write("cannot be nobody");
    try {
      write(body());
    } catch (const std::exception& error) {
      write(error.what());
    }
  });
  return process.read_line();
}

OtherProcess::OtherProcess(const std::function<void(const WriteLine&)>& body) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) std::abort();
  id_ = fork();
  if (id_ == 0) {
    close(ends[0]);
    body([&](const std::string& line) {
      const std::string bytes = line + "\n";
      if (write(ends[1], bytes.data(), bytes.size()) < 0) _exit(1);
    });
    _exit(0);
  }
  close(ends[1]);
  pipe_ = ends[0];
}

OtherProcess::~OtherProcess() {
  kill();
  close(pipe_);
}

std::string OtherProcess::read_line() {
  std::array<char, 4096> bytes{};
  while (unread_.find('\n') == std::string::npos) {
    const ssize_t size = read(pipe_, bytes.data(), bytes.size());
    if (size <= 0) return {};  // half a line was never acknowledged
    unread_.append(bytes.data(), static_cast<std::size_t>(size));
  }
  const std::size_t end = unread_.find('\n');
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

void OtherProcess::kill() {
  if (id_ == 0) return;
  ::kill(id_, SIGKILL);
  waitpid(id_, nullptr, 0);
  id_ = 0;
}

}  // namespace sextant::journal
