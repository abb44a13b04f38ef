// What the evaluator makes of a scheduler's answers, from a scheduler that answers as told. A real one runs
// in tests/slurm.
#include "trials/slurm_evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
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

/// Answers of a controller, one a question; the last is repeated.
struct Scheduler {
  ProgramOutput submission{0, "4711\n"};
  std::deque<std::string> states{"PENDING", "RUNNING", "COMPLETED"};
  std::string output;  ///< that the job writes when it starts to run
  std::string folder;
  std::vector<std::string> asked{};
  std::string exit_code = "0:0";
  bool cancelled = false;

  ProgramOutput operator()(const std::string& command) {
    asked.push_back(command);
    if (command.starts_with("sbatch")) return submission;
    if (command.starts_with("scancel")) {
      cancelled = cancelled || command == "scancel 4711";
      return {};
    }
    if (command.starts_with("squeue")) return {1, ""};  // built without JSON
    if (command.starts_with("sacct")) return {1, "Slurm accounting storage is disabled"};
    std::string state = states.front();
    if (states.size() > 1) states.pop_front();
    if (cancelled) state = "CANCELLED";
    if (state == "away")
      return {1, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"};
    if (state == "forgotten") return {1, "slurm_load_jobs error: Invalid job id specified"};
    if (state == "RUNNING" && !output.empty()) {
      std::ofstream(folder + "/trials/0001/output.log") << output;
      output.clear();
    }
    return {0, "JobId=4711 JobState=" + state + " Reason=None ExitCode=" + exit_code + "\n"};
  }
};

class SlurmTrials : public testing::Test {
 protected:
  SlurmTrials() {
    std::string pattern = testing::TempDir() + "slurm_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    scheduler_.folder = folder_;
    scheduler_.output = steps(10);
    options_.command.text = "train {config}";
    options_.arguments = "--partition=gpu";
    options_.folder = folder_;
    options_.poll_s = 0.05;
    options_.settle_s = 0.1;
    options_.cancel_s = 5;
    plan_.files = {{"arguments.txt", "--tp 2\n"}};
    plan_.config = "arguments.txt";
    plan_.settings.sequence_length_tokens = 4096;
    plan_.settings.gpus = 16;
    plan_.nodes = 2;
    plan_.gpus_per_node = 8;
  }
  ~SlurmTrials() override { std::filesystem::remove_all(folder_); }

  static std::string steps(int count) {
    std::string text;
    for (int step = 1; step <= count; ++step) {
      text += " iteration " + std::to_string(step) +
              "/ 10 | elapsed time per iteration (ms): 1000.0 | global batch size: 64 |\n";
    }
    return text;
  }

  TrialResult run(double stop_after_s = 1e9) {
    const auto evaluator = slurm_evaluator(
        options_, [&](const search::Point&) { return plan_; },
        [&](const std::string& command, const std::function<bool()>&) { return scheduler_(command); });
    const auto start = steady_clock::now();
    return evaluator->run(search::TrialRequest(), [&] {
      return steady_clock::now() - start > std::chrono::duration<double>(stop_after_s);
    });
  }

  bool asked(const std::string& command) const {
    return std::ranges::find(scheduler_.asked, command) != scheduler_.asked.end();
  }

  std::string folder_;
  Scheduler scheduler_;
  SlurmOptions options_;
  TrialPlan plan_;
};

TEST_F(SlurmTrials, SubmitOneJobAndReadItsLog) {
  options_.limits.time_s = 600;
  const TrialResult result = run();
  EXPECT_EQ(result.state, TrialState::kOk) << result.message;
  EXPECT_DOUBLE_EQ(result.objective, 64 * 4096 / 16.0);
  const std::string submission = scheduler_.asked.at(0);
  for (const char* part : {"sbatch --parsable ", " --nodes=2 ", " --no-requeue ", " --time=12 ",
                           " --partition=gpu ", "/trials/0001/output.log", "/trials/0001/command.sh"}) {
    EXPECT_THAT(submission, HasSubstr(part));
  }
  const std::string script = base::read_file(folder_ + "/trials/0001/command.sh");
  EXPECT_THAT(script, HasSubstr("export SEXTANT_TRIAL=1\n"));
  EXPECT_THAT(script, HasSubstr("/config/arguments.txt\n)\nstatus=$?\n"));
  EXPECT_THAT(base::read_file(folder_ + "/trials/0001/result.json"), HasSubstr("\"job\": \"4711\""));
}

TEST_F(SlurmTrials, WithoutAJobAreLaunchFailures) {
  for (const ProgramOutput& submission :
       {ProgramOutput{0, ""}, ProgramOutput{0, "Welcome to Cluster3\n"},
        ProgramOutput{1, "sbatch: error: Batch job submission failed: Invalid partition"},
        ProgramOutput{127, "sh: 1: sbatch: not found"}}) {
    scheduler_.submission = submission;
    scheduler_.asked.clear();
    const TrialResult result = run();
    EXPECT_EQ(result.state, TrialState::kLaunchFailure) << submission.output;
    EXPECT_EQ(result.price_s, 0);
    EXPECT_THAT(scheduler_.asked.back(),
                HasSubstr("scancel --name=sextant-"));  // in case it was made all the same
  }
}

TEST_F(SlurmTrials, OutliveAControllerThatIsAway) {
  scheduler_.states = {"RUNNING", "away", "away", "away", "RUNNING", "COMPLETED"};
  EXPECT_EQ(run().state, TrialState::kOk);
}

TEST_F(SlurmTrials, GiveUpWhenTheControllerStaysAway) {
  scheduler_.states = {"RUNNING", "away"};
  options_.silence_s = 0.3;
  options_.cancel_s = 0.3;
  const TrialResult result = run();
  EXPECT_EQ(result.state, TrialState::kNodeFailure);
  EXPECT_THAT(result.message, HasSubstr("the scheduler does not answer"));
  EXPECT_TRUE(asked("scancel 4711"));
}

TEST_F(SlurmTrials, OfAJobThatIsForgottenAreJudgedByItsFile) {
  scheduler_.states = {"RUNNING", "forgotten"};
  EXPECT_EQ(run().state, TrialState::kNodeFailure);  // no file: its node died
  scheduler_.states = {"RUNNING", "forgotten"};
  scheduler_.output = steps(10) + "\n";
  const auto evaluator = slurm_evaluator(
      options_, [&](const search::Point&) { return plan_; },
      [&](const std::string& command, const std::function<bool()>&) {
        if (command.starts_with("sacct")) base::write_file(folder_ + "/trials/0001/exit_status", "0\n");
        return scheduler_(command);
      });
  // The file appears with the job's end; the next question finds it.
  EXPECT_EQ(evaluator->run(search::TrialRequest(), [] { return false; }).state, TrialState::kOk);
}

TEST_F(SlurmTrials, WhoseNodeFailsSayNothingOfTheLayout) {
  scheduler_.states = {"RUNNING", "NODE_FAIL"};
  EXPECT_EQ(run().state, TrialState::kNodeFailure);
}

TEST_F(SlurmTrials, ThatSlurmKillsForMemoryRanOutOfTheHosts) {
  scheduler_.states = {"RUNNING", "OUT_OF_MEMORY"};
  scheduler_.output = steps(3);
  const TrialResult result = run();
  EXPECT_EQ(result.state, TrialState::kFailed);
  EXPECT_THAT(result.message, HasSubstr("host_out_of_memory"));
}

TEST_F(SlurmTrials, AreCancelledAtTheTimeLimit) {
  scheduler_.states = {"PENDING", "PENDING", "PENDING", "RUNNING"};
  scheduler_.output = "loading\n";
  options_.limits.time_s = 0.5;
  const TrialResult result = run();
  EXPECT_EQ(result.state, TrialState::kTimedOut);
  EXPECT_TRUE(asked("scancel 4711"));
  EXPECT_LT(result.price_s, 3);
}

TEST_F(SlurmTrials, AreCancelledWhenSomebodyInterrupts) {
  scheduler_.states = {"PENDING"};
  EXPECT_EQ(run(0.3).state, TrialState::kInterrupted);
  EXPECT_TRUE(asked("scancel 4711"));
}

TEST_F(SlurmTrials, DoNotWaitForNodesForEver) {
  scheduler_.states = {"PENDING"};
  options_.queue_s = 0.3;
  const TrialResult result = run();
  EXPECT_EQ(result.state, TrialState::kNodeFailure);
  EXPECT_THAT(result.message, HasSubstr("no nodes within the time to wait"));
  EXPECT_TRUE(asked("scancel 4711"));
}

TEST_F(SlurmTrials, CancelTheJobOfALostTrialFirst) {
  base::write_file(folder_ + "/trials/0001/job", "99\n");
  EXPECT_EQ(run().state, TrialState::kOk);
  EXPECT_EQ(scheduler_.asked.at(0), "scancel 99");
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/trials/0001.lost-1/job"));
}

}  // namespace
}  // namespace sextant::trials
