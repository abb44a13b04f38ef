// Test code that runs in a process of its own.
#pragma once

#include <functional>
#include <string>

namespace sextant::journal {

/// What `body` returns, from a forked process; `as_nobody`: one without root's privileges. An exception
/// becomes its text.
std::string in_other_process(const std::function<std::string()>& body, bool as_nobody = false);

/// A forked process that runs `body(write)`; what it gives to `write` arrives at read_line().
class OtherProcess {
 public:
  using WriteLine = std::function<void(const std::string&)>;
  explicit OtherProcess(const std::function<void(const WriteLine&)>& body);
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  ~OtherProcess();

  /// The next whole line; empty at the end.
  std::string read_line();
  /// SIGKILL, and waits until the process is gone.
  void kill();
  int id() const { return id_; }

 private:
  int id_ = 0;
  int pipe_ = -1;
  std::string unread_;
};

}  // namespace sextant::journal
