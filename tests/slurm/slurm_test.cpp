// Trials as jobs of a real Slurm: three nodes played by this machine (toy_cluster.sh). Skipped, with the
// reason, where Slurm is not installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "trials/slurm_evaluator.h"

namespace sextant::trials {
namespace {

using search::TrialResult;
using search::TrialState;
using std::chrono::steady_clock;
using testing::HasSubstr;

const std::string kScript = "tests/slurm/toy_cluster.sh ";

struct ShellResult {
  int status = 0;
  std::string output;
};

ShellResult shell(const std::string& command) {
  ShellResult result;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> portion{};
  while (const std::size_t size = std::fread(portion.data(), 1, portion.size(), pipe)) {
    result.output.append(portion.data(), size);
  }
  result.status = WEXITSTATUS(pclose(pipe));
  return result;
}

/// The cluster, for all tests of this program.
class ToyCluster : public testing::Environment {
 public:
  void SetUp() override {
    const ShellResult available = shell(kScript + "available");
    if (available.status != 0) {
      missing = available.output;
      return;
    }
    std::string pattern = testing::TempDir() + "toy_slurm_XXXXXX";
    folder = mkdtemp(pattern.data());
    const ShellResult started = shell(kScript + "start " + folder + " 3");
    ASSERT_EQ(started.status, 0) << started.output;
    setenv("SLURM_CONF", (folder + "/slurm.conf").c_str(), 1);
  }
  void TearDown() override {
    if (folder.empty()) return;
    shell(kScript + "stop " + folder);
    std::filesystem::remove_all(folder);
  }
  static inline std::string folder;
  static inline std::string missing;
};

const auto* const kCluster = testing::AddGlobalTestEnvironment(new ToyCluster);

bool until(const std::function<bool()>& holds, double limit_s = 120) {
  const auto end = steady_clock::now() + std::chrono::duration<double>(limit_s);
  while (!holds()) {
    if (steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

class Slurm : public testing::Test {
 protected:
  void SetUp() override {
    if (!ToyCluster::missing.empty()) GTEST_SKIP() << ToyCluster::missing;
    ASSERT_TRUE(until(
        [] { return shell("sinfo --noheader --Node --format=%T | grep -c '^idle$'").output == "3\n"; }));
    std::string pattern = testing::TempDir() + "slurm_trials_XXXXXX";
    run_folder_ = mkdtemp(pattern.data());
    options_.folder = run_folder_;
    options_.arguments = "--mem=100 --gres=gpu:8";
    options_.poll_s = 0.3;
    options_.limits.time_s = 120;
    options_.limits.broken_s = 1;
    plan_.files = {{"arguments.txt", "--tp 2\n"}};
    plan_.config = "arguments.txt";
    plan_.settings.sequence_length_tokens = 4096;
    plan_.settings.gpus = 16;
    plan_.nodes = 2;
    plan_.gpus_per_node = 8;
    plan_.price_per_gpu_hour = 3;
  }
  void TearDown() override {
    if (run_folder_.empty()) return;
    shell("scancel --user=$(id -un)");
    EXPECT_TRUE(until([] { return shell("squeue --noheader").output.empty(); }));
    std::filesystem::remove_all(run_folder_);
  }

  TrialResult run(const std::string& arguments) {
    return run_command("python3 " + std::filesystem::absolute("tests/launchers/fake_launcher.py").string() +
                       " --config {config} --gpus 16 " + arguments);
  }
  TrialResult run_command(const std::string& command) {
    options_.command.text = command;
    const auto evaluator = slurm_evaluator(options_, [&](const search::Point&) { return plan_; });
    return evaluator->run(search::TrialRequest(), [&] { return stop_.load(); });
  }

  /// Does something as soon as the trial's job is in this state.
  std::thread when(const std::string& state, const std::function<void(const std::string& job)>& action) {
    return std::thread([this, state, action] {
      const std::string path = run_folder_ + "/trials/0001/job";
      EXPECT_TRUE(until([&] {
        std::ifstream stream(path);
        std::string job;
        if (!(stream >> job) || shell("squeue --noheader --format=%T --jobs=" + job).output != state + "\n")
          return false;
        action(job);
        return true;
      }));
    });
  }

  nlohmann::json record() const {
    return nlohmann::json::parse(base::read_file(run_folder_ + "/trials/0001/result.json"));
  }

  SlurmOptions options_;
  TrialPlan plan_;
  std::string run_folder_;
  std::atomic<bool> stop_ = false;
};

TEST_F(Slurm, MeasuresAJobOnTwoNodes) {
  const TrialResult result = run("--format primus --ranks 2 --out {out} --step-s 0.1");
  EXPECT_EQ(result.state, TrialState::kOk) << result.message;
  EXPECT_NEAR(result.objective, 64 * 4096 / 16.0, 1);
  const nlohmann::json kept = record();
  EXPECT_EQ(kept["end"]["how"], "exited");
  EXPECT_THAT(kept["job"].get<std::string>(), testing::MatchesRegex("[0-9]+"));
  EXPECT_NEAR(result.price_money, result.price_s / 3600 * 16 * 3, 1e-12);
  EXPECT_LT(result.price_s, 60);  // waiting is not paid for
}

TEST_F(Slurm, StartsTasksOnAllNodes) {
  run_command(
      "srun --ntasks-per-node=1 sh -c 'echo $SLURM_NODEID $SEXTANT_TRIAL > {out}/node$SLURM_NODEID'; : "
      "{config}");
  EXPECT_EQ(base::read_file(run_folder_ + "/trials/0001/out/node0"), "0 1\n");
  EXPECT_EQ(base::read_file(run_folder_ + "/trials/0001/out/node1"), "1 1\n");
}

TEST_F(Slurm, FindsTheRankThatRanOutOfMemory) {
  const TrialResult result = run("--ranks 2 --out {out} --fault oom --bad-rank 1");
  EXPECT_EQ(result.state, TrialState::kOutOfMemory);
  EXPECT_EQ(record()["evidence"]["file"], "out/rank_1.log");
}

TEST_F(Slurm, CancelsAJobWhoseRanksWaitForADeadOne) {
  const TrialResult result = run("--ranks 2 --stubborn --fault oom_and_stay --bad-rank 1");
  EXPECT_EQ(result.state, TrialState::kOutOfMemory);
  EXPECT_EQ(record()["end"]["how"], "broken");
  EXPECT_EQ(shell("squeue --noheader").output, "");
}

TEST_F(Slurm, ReportsExitStatusAndSignal) {
  EXPECT_EQ(run_command(": {config}; echo something; exit 3").state, TrialState::kFailed);
  EXPECT_EQ(record()["end"]["exit_status"], 3);
  EXPECT_EQ(run_command(": {config}; kill -KILL $$").state, TrialState::kFailed);
  EXPECT_EQ(record()["verdict"], "host_out_of_memory");
}

TEST_F(Slurm, CancelsAJobAtTheTimeLimit) {
  options_.limits.time_s = 3;
  const TrialResult result = run("--silent --steps 100000");
  EXPECT_EQ(result.state, TrialState::kTimedOut) << result.message;
  EXPECT_EQ(shell("squeue --noheader").output, "");
}

TEST_F(Slurm, UnderstandsAJobThatTheSchedulerEndedForItsTime) {
  options_.arguments += " --time=0:01";  // Slurm rounds up to a minute
  const TrialResult result = run("--silent --steps 1000000 --step-s 1");
  EXPECT_EQ(result.state, TrialState::kTimedOut);
  EXPECT_THAT(record()["end"]["detail"].get<std::string>(), HasSubstr("TIMEOUT"));
}

TEST_F(Slurm, CancelsAJobWhenSomebodyInterrupts) {
  std::thread interrupting = when("RUNNING", [&](const std::string&) { stop_ = true; });
  const TrialResult result = run("--steps 1000000 --ignore-sigterm");
  interrupting.join();
  EXPECT_EQ(result.state, TrialState::kInterrupted);
  EXPECT_EQ(record()["all_processes_gone"], true);
  EXPECT_EQ(shell("squeue --noheader").output, "");
}

TEST_F(Slurm, CancelsAJobThatStillWaitsWhenSomebodyInterrupts) {
  shell("scontrol update nodename=node[1-3] state=drain reason=test");
  std::thread interrupting = when("PENDING", [&](const std::string&) { stop_ = true; });
  const TrialResult result = run("");
  interrupting.join();
  shell("scontrol update nodename=node[1-3] state=resume");
  EXPECT_EQ(result.state, TrialState::kInterrupted);
  EXPECT_EQ(result.price_s, 0);
}

TEST_F(Slurm, WaitsWhileNodesAreDrained) {
  shell("scontrol update nodename=node[1-3] state=drain reason=test");
  std::thread resuming = when("PENDING", [](const std::string&) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    shell("scontrol update nodename=node[1-3] state=resume");
  });
  const TrialResult result = run("");
  resuming.join();
  EXPECT_EQ(result.state, TrialState::kOk) << result.message;
}

TEST_F(Slurm, LetsAJobEndOnNodesThatAreBeingDrained) {
  std::thread draining = when("RUNNING", [](const std::string&) {
    shell("scontrol update nodename=node[1-3] state=drain reason=test");
  });
  const TrialResult result = run("--steps 30 --step-s 0.1");
  draining.join();
  shell("scontrol update nodename=node[1-3] state=resume");
  EXPECT_EQ(result.state, TrialState::kOk) << result.message;
}

TEST_F(Slurm, SaysThatANodeFailed) {
  std::thread failing = when("RUNNING", [](const std::string&) {
    shell("scontrol update nodename=node[1-3] state=down reason=test");
  });
  const TrialResult result = run("--steps 1000000 --step-s 0.1");
  failing.join();
  shell("scontrol update nodename=node[1-3] state=resume");
  EXPECT_EQ(result.state, TrialState::kNodeFailure) << result.message;
}

TEST_F(Slurm, OutlivesARestartOfTheController) {
  std::thread restarting = when("RUNNING", [](const std::string&) {
    shell(kScript + "controller-stop " + ToyCluster::folder);
    std::this_thread::sleep_for(std::chrono::seconds(2));
    shell(kScript + "controller-start " + ToyCluster::folder);
  });
  const TrialResult result = run("--steps 80 --step-s 0.1");
  restarting.join();
  EXPECT_EQ(result.state, TrialState::kOk) << result.message;
}

TEST_F(Slurm, CancelsAJobWhileTheControllerIsAway) {
  std::thread stopping = when("RUNNING", [&](const std::string&) {
    shell(kScript + "controller-stop " + ToyCluster::folder);
    stop_ = true;
    std::this_thread::sleep_for(std::chrono::seconds(3));
    shell(kScript + "controller-start " + ToyCluster::folder);
  });
  const TrialResult result = run("--steps 1000000 --step-s 0.1");
  stopping.join();
  EXPECT_EQ(result.state, TrialState::kInterrupted);
  EXPECT_EQ(record()["all_processes_gone"], true);
}

TEST_F(Slurm, CallsARefusedSubmissionALaunchFailure) {
  options_.arguments = "--partition=missing";
  const TrialResult result = run("");
  EXPECT_EQ(result.state, TrialState::kLaunchFailure);
  EXPECT_THAT(result.message, HasSubstr("invalid partition specified"));
}

TEST_F(Slurm, CallsAJobWithoutOutputALaunchFailure) {
  EXPECT_EQ(run_command(": {config}").state, TrialState::kLaunchFailure);
}

TEST_F(Slurm, CancelsTheJobOfALostTrial) {
  const ShellResult lost = shell("sbatch --parsable --mem=100 --wrap='sleep 1000'");
  base::write_file(run_folder_ + "/trials/0001/job", lost.output);
  EXPECT_EQ(run("").state, TrialState::kOk);
  EXPECT_EQ(shell("squeue --noheader").output, "");
}

}  // namespace
}  // namespace sextant::trials
