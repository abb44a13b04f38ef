// Commands run, end, and leave nothing behind, whatever they do.
#include "trials/process_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/file.h"

namespace sextant::trials {
namespace {

using std::chrono::steady_clock;
using testing::HasSubstr;

class ProcessTreeTest : public testing::Test {
 protected:
  ProcessTreeTest() {
    std::string pattern = testing::TempDir() + "process_tree_XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~ProcessTreeTest() override { std::filesystem::remove_all(folder_); }

  ProcessRequest request(const std::string& command) const {
    return {.command = command, .folder = folder_, .output = folder_ + "/output.log", .environment = {}};
  }
  std::string output() const { return base::read_file(folder_ + "/output.log"); }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }

  /// The process id that a command wrote to `name`.
  pid_t pid_in(const std::string& name) const {
    pid_t pid = 0;
    std::ifstream(file(name)) >> pid;
    return pid;
  }

  std::string folder_;
};

bool until(const std::function<bool()>& holds, double limit_s = 20) {
  const auto end = steady_clock::now() + std::chrono::duration<double>(limit_s);
  while (!holds()) {
    if (steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

/// No process, not even a dead one that nobody buried.
bool is_gone(pid_t pid) { return pid > 0 && kill(pid, 0) != 0 && errno == ESRCH; }

ProcessEnd end_of(ProcessTree& tree) {
  EXPECT_TRUE(until([&] { return tree.ended().has_value(); }));
  return tree.ended().value_or(ProcessEnd());
}

TEST_F(ProcessTreeTest, RunsACommandWithItsFolderOutputAndEnvironment) {
  ProcessRequest asked = request("pwd; echo \"$SEXTANT_TEST\"; echo loud >&2; cat; exit 3");
  asked.environment = {{"SEXTANT_TEST", "a b"}};
  ProcessTree tree(asked);
  const ProcessEnd end = end_of(tree);
  EXPECT_EQ(end.how, ProcessEnd::How::kExited);
  EXPECT_EQ(end.code, 3);
  EXPECT_TRUE(until([&] { return tree.gone(); }));
  EXPECT_EQ(output(), std::filesystem::canonical(folder_).string() + "\na b\nloud\n");
}

TEST_F(ProcessTreeTest, SaysBySignalWhenASignalEndedTheCommand) {
  ProcessTree tree(request("kill -SEGV $$"));
  const ProcessEnd end = end_of(tree);
  EXPECT_EQ(end.how, ProcessEnd::How::kSignalled);
  EXPECT_EQ(end.code, SIGSEGV);
  EXPECT_EQ(signal_name(end.code), "SIGSEGV");
}

TEST_F(ProcessTreeTest, SaysWhyACommandNeverBegan) {
  ProcessRequest asked = request("true");
  asked.folder = folder_ + "/missing";
  ProcessTree tree(asked);
  const ProcessEnd end = end_of(tree);
  EXPECT_EQ(end.how, ProcessEnd::How::kNeverBegan);
  EXPECT_EQ(end.reason, "No such file or directory");
  asked.output = folder_ + "/missing/output.log";
  EXPECT_THROW(ProcessTree{asked}, base::OutsideError);
}

TEST_F(ProcessTreeTest, GivesTheCommandNothingButItsOutput) {
  const int leaked = dup(0);
  ProcessTree tree(request("ls /proc/self/fd | tr '\\n' ' '"));
  end_of(tree);
  close(leaked);
  EXPECT_EQ(output(), "0 1 2 3 ");  // 3 is ls's own view of the folder
}

TEST_F(ProcessTreeTest, StopsChildrenGrandchildrenAndDaemonsInSessionsOfTheirOwn) {
  ProcessTree tree(
      request("echo $$ > command; sleep 1000 & echo $! > child;"
              "setsid sh -c 'echo $$ > session; sleep 1000' & "
              "sh -c 'setsid sh -c \"echo \\$\\$ > daemon; exec sleep 1000\" & exit 0';"
              "touch ready; wait"));
  ASSERT_TRUE(until([&] {
    return std::filesystem::exists(file("ready")) && pid_in("session") > 0 && pid_in("daemon") > 0;
  }));
  EXPECT_FALSE(tree.ended());
  EXPECT_TRUE(tree.stop(5));
  for (const char* name : {"command", "child", "session", "daemon"})
    EXPECT_TRUE(is_gone(pid_in(name))) << name;
  EXPECT_EQ(end_of(tree).code, SIGTERM);
}

TEST_F(ProcessTreeTest, KillsWhatIgnoresSigtermAfterTheGrace) {
  ProcessTree tree(request("trap '' TERM; echo $$ > command; touch ready; while true; do sleep 0.1; done"));
  ASSERT_TRUE(until([&] { return std::filesystem::exists(file("ready")); }));
  const auto start = steady_clock::now();
  EXPECT_TRUE(tree.stop(0.5));
  EXPECT_GE(steady_clock::now() - start, std::chrono::milliseconds(450));
  EXPECT_EQ(end_of(tree).code, SIGKILL);
  EXPECT_TRUE(is_gone(pid_in("command")));
}

TEST_F(ProcessTreeTest, LetsACommandEndInGoodOrder) {
  ProcessTree tree(request("trap 'echo saved; exit 0' TERM; touch ready; while true; do sleep 0.05; done"));
  ASSERT_TRUE(until([&] { return std::filesystem::exists(file("ready")); }));
  EXPECT_TRUE(tree.stop(20));
  EXPECT_EQ(end_of(tree).how, ProcessEnd::How::kExited);
  EXPECT_THAT(output(), HasSubstr("saved\n"));
}

TEST_F(ProcessTreeTest, StopsWhatACommandLeavesBehind) {
  ProcessRequest asked = request("setsid sleep 1000 & echo $! > left");
  asked.leftover_s = 0.2;
  ProcessTree tree(asked);
  EXPECT_EQ(end_of(tree).code, 0);
  EXPECT_TRUE(until([&] { return tree.gone(); }));
  EXPECT_TRUE(is_gone(pid_in("left")));
}

TEST_F(ProcessTreeTest, StopsAStoppedProcess) {
  ProcessTree tree(request("echo $$ > command; touch ready; kill -STOP $$; echo never"));
  ASSERT_TRUE(until([&] { return std::filesystem::exists(file("ready")); }));
  EXPECT_TRUE(tree.stop(5));
  EXPECT_TRUE(is_gone(pid_in("command")));
}

TEST_F(ProcessTreeTest, KillsATreeThatKeepsForking) {
  ProcessTree tree(
      request("trap '' TERM; f() { trap '' TERM; sleep 0.01; (f) & }; touch ready; f; f; wait; sleep 1000"));
  ASSERT_TRUE(until([&] { return std::filesystem::exists(file("ready")); }));
  EXPECT_TRUE(tree.stop(0.3));
}

TEST_F(ProcessTreeTest, StopsWithItsOwner) {
  {
    ProcessTree tree(request("echo $$ > command; sleep 1000"));
    ASSERT_TRUE(until([&] { return pid_in("command") > 0; }));
  }
  EXPECT_TRUE(is_gone(pid_in("command")));
}

TEST_F(ProcessTreeTest, DiesWhenItsOwnerIsKilled) {
  const pid_t owner = fork();
  if (owner == 0) {  // a process of its own in Sextant's place
    ProcessTree tree(request("echo $$ > command; sleep 1000"));
    pause();
    _exit(0);
  }
  ASSERT_TRUE(until([&] { return pid_in("command") > 0; }));
  kill(owner, SIGKILL);
  int status = 0;
  waitpid(owner, &status, 0);
  EXPECT_TRUE(until([&] { return is_gone(pid_in("command")); }));
}

TEST_F(ProcessTreeTest, ManyAtOnceDoNotHoldOneAnother) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) {
        ProcessRequest asked = request("exit 7");
        asked.output = folder_ + "/output" + std::to_string(i);
        ProcessTree tree(asked);
        EXPECT_EQ(end_of(tree).code, 7);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace sextant::trials
