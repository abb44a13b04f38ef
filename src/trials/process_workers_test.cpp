#include "trials/process_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "trials/process_tree.h"

namespace sextant::trials {
namespace {

class WorkerWatchTest : public testing::Test {
 protected:
  WorkerWatchTest() {
    std::string pattern = testing::TempDir() + "workers_XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~WorkerWatchTest() override { std::filesystem::remove_all(folder_); }

  ProcessRequest request(const std::string& command) const {
    return {.command = command, .folder = folder_, .output = folder_ + "/output.log", .environment = {}};
  }
  bool exists(const char* name) const { return std::filesystem::exists(folder_ + "/" + name); }
  void touch(const char* name) const { std::ofstream(folder_ + "/" + name); }

  static bool until(const std::function<bool()>& holds) {
    for (int i = 0; i < 2000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  std::string folder_;
};

TEST_F(WorkerWatchTest, SeesRanksButNotTheirHelpers) {
  // A rank behind a shell of its own, with a data loader; a rank in a session of its own; a monitor without a
  // rank.
  ProcessTree tree(
      request("RANK=0 sh -c 'sleep 1000 & exec sh -c \"sleep 1000; true\"' & "
              "RANK=1 setsid sleep 1000 & sleep 1000 & wait"));
  std::vector<std::string> ranks;
  EXPECT_TRUE(until([&] {
    ranks.clear();
    for (const WorkerProcess& worker : worker_processes(tree.supervisor())) ranks.push_back(worker.rank);
    return ranks.size() == 2;
  }));
  EXPECT_THAT(ranks, testing::UnorderedElementsAre("0", "1"));
}

TEST_F(WorkerWatchTest, ReportsARankThatIsGoneWhileOthersLive) {
  ProcessTree tree(
      request("RANK=0 sleep 1000 & RANK=1 sh -c 'while [ ! -e go ]; do sleep 0.02; done' & wait"));
  WorkerWatch watch(tree.supervisor());
  EXPECT_TRUE(until([&] { return worker_processes(tree.supervisor()).size() == 2; }));
  watch.look(1);
  EXPECT_FALSE(watch.death());
  touch("go");
  EXPECT_TRUE(until([&] { return worker_processes(tree.supervisor()).size() == 1; }));
  watch.look(2);
  ASSERT_TRUE(watch.death());
  EXPECT_EQ(watch.death()->rank, "1");
  EXPECT_EQ(watch.death()->at_s, 2);
}

TEST_F(WorkerWatchTest, IsSilentWhenAllEnd) {
  ProcessTree tree(
      request("RANK=0 sh -c 'while [ ! -e go ]; do sleep 0.02; done' & "
              "RANK=1 sh -c 'while [ ! -e go ]; do sleep 0.02; done' & wait; sleep 1000"));
  WorkerWatch watch(tree.supervisor());
  EXPECT_TRUE(until([&] { return worker_processes(tree.supervisor()).size() == 2; }));
  watch.look(1);
  touch("go");
  EXPECT_TRUE(until([&] { return worker_processes(tree.supervisor()).empty(); }));
  watch.look(2);
  EXPECT_FALSE(watch.death());
}

}  // namespace
}  // namespace sextant::trials
