// Outputs of Slurm's commands, of several versions and sites.
#include "trials/slurm_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace sextant::trials {
namespace {

using How = backends::RunEnd::How;

// llnl/maestrowf issue 441, Parsl/parsl pull request 2636, mlr-org/batchtools issue 243,
// deepmodeling/dpdispatcher 104.
TEST(SubmittedJob, IsFoundAmongBanners) {
  EXPECT_EQ(submitted_job("Submitted batch job 70010203 on cluster north"), "70010203");
  EXPECT_EQ(
      submitted_job(
          "*** Welcome to Cluster3 ***\n\nYou are on login4\n1\t2\nNews: 17 nodes are back\n- 2 of 3\n\n"
          "Quota: 5 of 10 TB\nHelp: +49 123 456\n2025-01-15\n====\nSubmitted batch job 123456\n"),
      "123456");
  EXPECT_EQ(submitted_job("sbatch: account charged, 400,000.50 hours left\nSubmitted batch job 7654321\n"),
            "7654321");
  EXPECT_EQ(submitted_job("4711;north\n"), "4711");
  EXPECT_EQ(submitted_job("4711"), "4711");
  EXPECT_EQ(submitted_job("sbatch: lua: job accepted\n4711\n"), "4711");
}

TEST(SubmittedJob, IsAbsentWhereNoneIs) {
  for (const char* output :
       {"", "\n", "sbatch: error: Batch job submission failed: Invalid partition", "Cluster3 login4",
        "12 jobs wait", "Submitted batch job ", "4711;north is down", "0x1f"}) {
    EXPECT_EQ(submitted_job(output), std::nullopt) << output;
  }
}

TEST(Squeue, OfVersion22PrintsAWord) {
  const char* text = R"({"meta": {}, "errors": [], "jobs": [
    {"job_id": 1, "job_state": "RUNNING", "state_reason": "None"},
    {"job_id": 12, "job_state": "PENDING", "state_reason": "Resources"}]})";
  const auto state = state_in_squeue(text, "12");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->phase, JobPhase::kPending);
  EXPECT_EQ(state->reason, "Resources");
  EXPECT_EQ(state_in_squeue(text, "1")->phase, JobPhase::kRunning);
  EXPECT_EQ(state_in_squeue(text, "1")->reason, "");
  EXPECT_FALSE(state_in_squeue(text, "2"));
}

TEST(Squeue, WhoseControllerIsAwayPrintsAnEmptyDocument) {
  EXPECT_FALSE(
      state_in_squeue(R"({"errors": [{"error_number": -1, "source": "slurm_load_jobs"}], "jobs": []})", "1"));
}

TEST(Squeue, OfLaterVersionsPrintsAList) {
  const char* text =
      R"({"jobs": [{"job_id": 7, "job_state": ["COMPLETED", "COMPLETING"], "state_reason": "None"},
                                  {"job_id": 8, "job_state": ["TIMEOUT"], "state_reason": "TimeLimit"}]})";
  EXPECT_EQ(state_in_squeue(text, "7")->phase, JobPhase::kEnding);
  EXPECT_EQ(state_in_squeue(text, "8")->phase, JobPhase::kEnded);
}

TEST(Squeue, ThatPrintsSomethingElseIsNoAnswer) {
  EXPECT_THROW(state_in_squeue("", "1"), std::runtime_error);
  EXPECT_THROW(state_in_squeue("slurm_load_jobs error: Unable to contact slurm controller", "1"),
               std::runtime_error);
  EXPECT_THROW(state_in_squeue("[1]", "1"), std::runtime_error);
}

TEST(Scontrol, PrintsFieldsOnALine) {
  const auto state = state_in_scontrol(
      "JobId=3 JobName=sextant Priority=1 Requeue=0 JobState=FAILED Reason=NonZeroExitCode Dependency=(null) "
      "ExitCode=3:0 "
      "DerivedExitCode=0:0 RunTime=1-00:01:02 TimeLimit=00:10:00\n");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->word, "FAILED");
  EXPECT_EQ(state->reason, "NonZeroExitCode");
  EXPECT_EQ(state->exit_status, 3);
  EXPECT_EQ(state->signal, 0);
  EXPECT_EQ(state->run_s, 86462);
  EXPECT_FALSE(state_in_scontrol("slurm_load_jobs error: Invalid job id specified"));
}

TEST(Sacct, PrintsTheJobInItsFirstLine) {
  const auto state = state_in_sacct("CANCELLED by 1000|0:15\nCANCELLED|0:15\n");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->word, "CANCELLED");
  EXPECT_EQ(state->signal, 15);
  EXPECT_FALSE(state_in_sacct("Slurm accounting storage is disabled"));
  EXPECT_FALSE(state_in_sacct(""));
}

TEST(JobEnd, IsWhatTheStateSays) {
  const auto end_of = [](const char* word, int status = 0, int signal = 0) {
    return run_end({JobPhase::kEnded, word, "", status, signal});
  };
  EXPECT_EQ(end_of("COMPLETED").how, How::kExited);
  EXPECT_EQ(end_of("FAILED", 3).exit_status, 3);
  EXPECT_EQ(end_of("FAILED", 0, 11).how, How::kSignalled);
  EXPECT_EQ(end_of("TIMEOUT", 0, 15).how, How::kTimeLimit);
  EXPECT_EQ(end_of("NODE_FAIL").how, How::kNodeFailed);
  EXPECT_EQ(end_of("PREEMPTED", 0, 15).how, How::kNodeFailed);
  EXPECT_EQ(end_of("CANCELLED", 0, 15).how, How::kInterrupted);
  EXPECT_EQ(end_of("OUT_OF_MEMORY").signal, 9);
}

}  // namespace
}  // namespace sextant::trials
