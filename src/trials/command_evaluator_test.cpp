// Trials run by a command: tests/launchers/fake_launcher.py prints and fails as real launchers do.
#include "trials/command_evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace sextant::trials {
namespace {

using search::TrialResult;
using search::TrialState;
using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::IsEmpty;

/// The system's interpreter where there is one: shims of version managers take longer than the launcher.
std::string interpreter() {
  return std::filesystem::exists("/usr/bin/python3") ? "/usr/bin/python3 -S" : "python3 -S";
}
const std::string kLauncher = interpreter() + " tests/launchers/fake_launcher.py ";

class CommandTrial : public testing::Test {
 protected:
  CommandTrial() {
    std::string pattern = testing::TempDir() + "trials_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    options_.folder = folder_;
    options_.limits.time_s = 60;
    options_.limits.broken_s = 1;
    options_.limits.worker_s = 1;
    options_.limits.grace_s = 1;
    plan_.files = {{"arguments.txt", "--tp 2\n"}, {"sextant.yaml", "tp: 2\n"}};
    plan_.config = "arguments.txt";
    plan_.settings.sequence_length_tokens = 4096;
    plan_.settings.global_batch = 64;
    plan_.settings.gpus = 8;
    plan_.nodes = 1;
    plan_.gpus_per_node = 8;
    plan_.price_per_gpu_hour = 2;
    plan_.layout = "tp=2";
  }
  ~CommandTrial() override { std::filesystem::remove_all(folder_); }

  TrialResult run(const std::string& arguments, std::size_t repeat = 0) {
    return run_command_line(kLauncher + "--config {config} " + arguments, repeat);
  }

  TrialResult run_command_line(const std::string& command, std::size_t repeat = 0) {
    options_.command.text = command;
    const auto evaluator = command_evaluator(options_, [&](const search::Point&) { return plan_; });
    search::TrialRequest request;
    request.number = number_++;
    request.point = {1, 2};
    request.repeat = repeat;
    auto start = steady_clock::now();
    bool stopped = false;
    TrialResult result = evaluator->run(request, [&] {
      if (stopped || !stop_when_()) return stopped;
      start = steady_clock::now();
      return stopped = true;
    });
    took_s_ = std::chrono::duration<double>(steady_clock::now() - start).count();
    return result;
  }

  /// What a shell does that prints a step each 0.1 s, for ever: it starts sooner than a launcher.
  static std::string steps_for_ever() {
    return "s=0; while test -e {config}; do s=$((s+1)); echo \"{\\\"step\\\": $s, \\\"step_time_s\\\": "
           "1.0}\"; "
           "sleep 0.1; done";
  }
  bool wrote(const std::string& name) const {
    std::ifstream stream(folder_ + "/" + name);
    std::string word;
    return static_cast<bool>(stream >> word);
  }

  std::string trial_file(const std::string& name) const { return folder_ + "/trials/" + last() + "/" + name; }
  std::string last() const {
    const std::string digits = std::to_string(number_);
    return std::string(4 - digits.size(), '0') + digits;
  }
  nlohmann::json record() const { return nlohmann::json::parse(base::read_file(trial_file("result.json"))); }

  /// Process ids that a launcher wrote to `name` in the run's folder.
  std::vector<pid_t> pids_in(const std::string& name) const {
    std::ifstream stream(folder_ + "/" + name);
    std::vector<pid_t> pids;
    for (pid_t pid = 0; stream >> pid;) pids.push_back(pid);
    EXPECT_THAT(pids, testing::Not(IsEmpty())) << name;
    return pids;
  }
  static void expect_gone(const std::vector<pid_t>& pids) {
    for (const pid_t pid : pids) EXPECT_TRUE(kill(pid, 0) != 0 && errno == ESRCH) << pid;
  }

  std::string folder_;
  CommandOptions options_;
  TrialPlan plan_;
  std::size_t number_ = 0;
  std::function<bool()> stop_when_ = [] { return false; };
  double took_s_ = 0;  ///< from the start, or from when it was stopped
};

TEST_F(CommandTrial, MeasuresEveryFormat) {
  for (const char* format : {"megatron", "primus", "torchtitan", "nemo", "deepspeed", "json"}) {
    const TrialResult result = run(std::string("--format ") + format);
    EXPECT_EQ(result.state, TrialState::kOk) << format << ": " << result.message;
    // 64 · 4096 tokens a second on 8 GPUs; the first step, ten times as long, does not count.
    EXPECT_NEAR(result.objective, 32768, 33) << format;
    EXPECT_EQ(result.message, "") << format;
  }
}

TEST_F(CommandTrial, LeavesARecordOfEverything) {
  const TrialResult result = run("--format primus --ranks 2 --out {out}/logs");
  const nlohmann::json kept = record();
  EXPECT_EQ(kept["verdict"], "ok");
  EXPECT_EQ(kept["trial"], 1);
  EXPECT_EQ(kept["layout"], "tp=2");
  EXPECT_EQ(kept["end"]["how"], "exited");
  EXPECT_EQ(kept["log"]["formats"][0], "primus");
  EXPECT_EQ(kept["log"]["steps_seen"], 10);
  EXPECT_EQ(kept["log"]["dropped_first"], 1);
  EXPECT_NEAR(kept["log"]["step_time_s"]["mean"].get<double>(), 1, 1e-9);
  EXPECT_NEAR(kept["log"]["memory"]["device_bytes"].get<double>(), 94.71 * 1024 * 1024 * 1024, 1);
  EXPECT_EQ(kept["gpus"], 8);
  EXPECT_EQ(result.peak_bytes, kept["log"]["memory"]["device_bytes"]);
  // Wall seconds · 8 GPUs · 2 a GPU-hour.
  EXPECT_DOUBLE_EQ(result.price_money, result.price_s / 3600 * 8 * 2);
  EXPECT_DOUBLE_EQ(kept["price"].get<double>(), result.price_money);
  EXPECT_EQ(base::read_file(trial_file("config/arguments.txt")), "--tp 2\n");
  EXPECT_THAT(base::read_file(trial_file("command.sh")), HasSubstr("/trials/0001/config/arguments.txt"));
  EXPECT_THAT(base::read_file(trial_file("out/logs/rank_1.log")), HasSubstr("iteration       10/      10"));
}

TEST_F(CommandTrial, GivesTheCommandItsEnvironment) {
  run_command_line("env > {out}/environment; cat /dev/stdin; : {config}", 2);
  const std::string environment = base::read_file(trial_file("out/environment"));
  for (const char* setting :
       {"SEXTANT_TRIAL=1\n", "SEXTANT_REPEAT=2\n", "SEXTANT_NODES=1\n", "SEXTANT_GPUS_PER_NODE=8\n",
        "SEXTANT_GPUS=8\n", "/config/arguments.txt\n", "PYTHONUNBUFFERED=1\n", "PATH="}) {
    EXPECT_THAT(environment, HasSubstr(setting));
  }
}

TEST_F(CommandTrial, WithoutAPriceCostsTimeOnly) {
  plan_.price_per_gpu_hour = 0;
  EXPECT_EQ(run("").price_money, 0);
  EXPECT_TRUE(record()["price"].is_null());
}

TEST_F(CommandTrial, FindsTheRankThatRanOutOfMemory) {
  const TrialResult result = run("--ranks 3 --out {out} --fault oom --bad-rank 1 --bad-step 2");
  EXPECT_EQ(result.state, TrialState::kOutOfMemory);
  EXPECT_THAT(result.message, HasSubstr("out/rank_1.log:1: [rank1]: torch.OutOfMemoryError"));
  EXPECT_EQ(record()["evidence"]["file"], "out/rank_1.log");
}

TEST_F(CommandTrial, DoesNotWaitForRanksThatWaitForADeadOne) {
  const TrialResult result = run("--ranks 2 --stubborn --fault oom_and_stay --bad-rank 1");
  EXPECT_EQ(result.state, TrialState::kOutOfMemory);
  EXPECT_LT(took_s_, 20);
  EXPECT_EQ(record()["end"]["how"], "broken");
}

TEST_F(CommandTrial, SaysThatFragmentationIsCuredWithoutAnotherLayout) {
  const TrialResult result = run("--fault fragmented");
  EXPECT_EQ(record()["verdict"], "fragmentation");
  EXPECT_THAT(result.message, HasSubstr("expandable_segments:True"));
}

// NVIDIA-NeMo/Megatron-Bridge pull request 3107: the same configuration passes on some runs only.
TEST_F(CommandTrial, ThatRunsOnlySometimesIsBorderline) {
  search::History history;
  for (std::size_t repeat = 0; repeat < 3; ++repeat) {
    history.push_back({{1, 2}, repeat, run("--fault oom_on_repeat_1", repeat)});
  }
  EXPECT_EQ(history[0].result.state, TrialState::kOk);
  EXPECT_EQ(history[1].result.state, TrialState::kOutOfMemory);
  EXPECT_EQ(history[2].result.state, TrialState::kOk);
  EXPECT_EQ(search::standing(history, {1, 2})->state, TrialState::kBorderline);
}

TEST_F(CommandTrial, LabelsRoutingThatWasForcedToBalance) {
  const TrialResult result = run("--forced-balance");
  EXPECT_EQ(result.state, TrialState::kOk);
  EXPECT_THAT(result.message, HasSubstr("routing was forced to be even"));
  EXPECT_EQ(record()["forced_balanced_routing"], true);
  plan_.expert_skew = 2.5;
  run("");
  EXPECT_EQ(record()["forced_balanced_routing"], false);
  EXPECT_EQ(record()["expert_skew"], 2.5);
}

TEST_F(CommandTrial, TellsOtherFailuresApart) {
  const auto verdict_of = [&](const std::string& arguments) {
    run(arguments);
    return record()["verdict"].get<std::string>();
  };
  EXPECT_EQ(verdict_of("--fault assert --bad-step 0"), "configuration_error");
  EXPECT_EQ(verdict_of("--fault assert"), "crashed");
  EXPECT_EQ(verdict_of("--fault segfault"), "crashed");
  EXPECT_EQ(verdict_of("--nan-step 4"), "not_a_number");
  EXPECT_EQ(verdict_of("--silent"), "launch_failure");
  EXPECT_EQ(verdict_of("--steps 1"), "too_short");
  EXPECT_EQ(verdict_of("--exit-status 5"), "ok");  // after "training is done"
  EXPECT_EQ(verdict_of("--format json --steps 4 --fault vanish --bad-step 2"), "crashed");
  EXPECT_EQ(verdict_of("--no-such-flag"), "configuration_error");
}

TEST_F(CommandTrial, ThatIsNotFoundOrPrintsNothingIsALaunchFailure) {
  EXPECT_EQ(run_command_line("no_such_launcher {config}").state, TrialState::kLaunchFailure);
  const TrialResult nothing = run_command_line("true {config}");
  EXPECT_EQ(nothing.state, TrialState::kLaunchFailure);
  EXPECT_THAT(nothing.message, HasSubstr("printed nothing"));
}

TEST_F(CommandTrial, WhoseCommandIsKilledRanOutOfTheHostsMemory) {
  const TrialResult result = run_command_line(": {config}; kill -KILL $$");
  EXPECT_EQ(result.state, TrialState::kFailed);
  EXPECT_EQ(record()["verdict"], "host_out_of_memory");
}

// deepspeedai/DeepSpeed issue 4100: the tuner hung after one worker had died.
TEST_F(CommandTrial, EndsWhenAWorkerDiesAndTheSearchGoesOn) {
  options_.limits.time_s = 3;
  const TrialResult result =
      run_command_line("(sleep 1; exit 1) & echo $! > " + folder_ +
                       "/first; (exec sleep 100000) & echo $! > " + folder_ + "/second; : {config}; wait");
  EXPECT_NE(result.state, TrialState::kOk);
  EXPECT_LT(took_s_, 20);
  expect_gone(pids_in("first"));
  expect_gone(pids_in("second"));
  options_.limits.time_s = 60;
  EXPECT_EQ(run("").state, TrialState::kOk);
}

TEST_F(CommandTrial, EndsSoonAfterARankHasDied) {
  const TrialResult result =
      run("--ranks 3 --stubborn --steps 100000 --silent --step-s 1 --fault vanish --bad-rank 1 --pids " +
          folder_ + "/pids");
  EXPECT_EQ(result.state, TrialState::kFailed);
  EXPECT_THAT(result.message, HasSubstr("the process of rank 1 died"));
  EXPECT_LT(took_s_, 30);
  expect_gone(pids_in("pids"));
}

TEST_F(CommandTrial, ThatNeverPrintsAStepTimesOut) {
  options_.limits.time_s = 2;
  const TrialResult result =
      run_command_line("sleep 100000 & echo $$ $! > " + folder_ + "/pids; : {config}; wait");
  EXPECT_EQ(result.state, TrialState::kTimedOut);
  EXPECT_EQ(result.objective, 0);  // which nobody reads: the state is not ok
  EXPECT_TRUE(record()["log"]["tflops_per_gpu"].is_null());
  EXPECT_TRUE(record()["log"]["tokens_per_s_per_gpu"].is_null());
  EXPECT_EQ(record()["verdict"], "time_out");
  EXPECT_LT(took_s_, 30);
  expect_gone(pids_in("pids"));
}

TEST_F(CommandTrial, ObeysTheTimeLimitOfTheSearch) {
  options_.command.text = "test -e {config} && sleep 100000";
  const auto evaluator = command_evaluator(options_, [&](const search::Point&) { return plan_; });
  search::TrialRequest request;
  request.time_limit_s = 1;
  EXPECT_EQ(evaluator->run(request, [] { return false; }).state, TrialState::kTimedOut);
}

TEST_F(CommandTrial, ThatStillStepsAtTheTimeLimitIsAMeasurement) {
  options_.limits.time_s = 4;
  const TrialResult result = run_command_line(steps_for_ever());
  EXPECT_EQ(result.state, TrialState::kOk) << result.message;
  EXPECT_NEAR(result.objective, 32768, 33);
}

TEST_F(CommandTrial, IsStoppedOnceItHasEnoughSteps) {
  options_.limits.enough_steps = 5;
  const TrialResult result = run_command_line(steps_for_ever());
  EXPECT_EQ(result.state, TrialState::kOk) << result.message;
  EXPECT_EQ(record()["end"]["how"], "enough_steps");
  EXPECT_LT(took_s_, 30);
}

TEST_F(CommandTrial, ThatStopsSteppingHangs) {
  options_.limits.hang_s = 1.5;
  const TrialResult result = run("--fault hang --pids " + folder_ + "/pids");
  EXPECT_EQ(result.state, TrialState::kTimedOut);
  EXPECT_EQ(record()["verdict"], "hang");
  expect_gone(pids_in("pids"));
}

TEST_F(CommandTrial, WhoseRanksWaitForOneAnotherHangs) {
  options_.limits.hang_s = 1.5;
  run("--fault watchdog");
  EXPECT_EQ(record()["verdict"], "hang");
  EXPECT_THAT(record()["log"]["notes"].dump(), HasSubstr("ranks waited in a collective"));
}

TEST_F(CommandTrial, IsCleanedUpAndRecordedWhenSomebodyInterrupts) {
  stop_when_ = [&] { return wrote("daemon") && wrote("pids"); };
  const TrialResult result = run("--ranks 2 --steps 1000000 --ignore-sigterm --daemon " + folder_ +
                                 "/daemon --pids " + folder_ + "/pids");
  EXPECT_EQ(result.state, TrialState::kInterrupted);
  EXPECT_EQ(record()["verdict"], "interrupted");
  EXPECT_LT(took_s_, 30);
  expect_gone(pids_in("pids"));
  expect_gone(pids_in("daemon"));
}

TEST_F(CommandTrial, WithEndlessOutputIsReadAndCut) {
  options_.limits.output_bytes = 2 << 20;
  const TrialResult result = run("--chatter 20000");  // 16 MB
  EXPECT_EQ(result.state, TrialState::kOk);
  EXPECT_LT(std::filesystem::file_size(trial_file("output.log")), 4U << 20);
  EXPECT_THAT(base::read_file(trial_file("output.log")), HasSubstr("left out here"));
}

TEST_F(CommandTrial, OfALostRunIsKeptBesideTheNewOne) {
  run("");
  number_ = 0;
  run("");
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/trials/0001.lost-1/result.json"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/trials/0001/result.json"));
}

TEST(CommandChecks, RefuseACommandThatIsTheSameForEveryCandidate) {
  EXPECT_THROW(check_command({"torchrun train.py"}), base::UserError);
  EXPECT_THROW(check_command({"torchrun {configuration}"}), base::UserError);
  EXPECT_NO_THROW(check_command({"torchrun {config}"}));
  EXPECT_NO_THROW(check_command({"bash -c 'source {config_dir}/exports.sh'"}));
  EXPECT_NO_THROW(check_command({"run $SEXTANT_CONFIG"}));
}

}  // namespace
}  // namespace sextant::trials
