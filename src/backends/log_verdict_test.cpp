// Verdicts over the logs of all ranks and the end of the processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "backends/log_reader.h"

namespace sextant::backends {
namespace {

using How = RunEnd::How;
using testing::HasSubstr;

RunEnd exited(int status) { return {.how = How::kExited, .exit_status = status}; }

/// Files by name with their text.
using Logs = std::vector<std::pair<std::string, std::string>>;

LogReport report_of(const Logs& logs, const RunEnd& end, const LogSettings& settings = {}) {
  TrainingLog log(settings);
  for (const auto& [name, text] : logs) log.feed(log.add_file(name), text);
  return log.report(end);
}

RunJudgement judged(const std::string& text, const RunEnd& end) {
  return report_of({{"rank0.log", text}}, end).judgement;
}

/// Lines of steps `first` to `last` of `total`, a second each.
std::string steps(int first, int last, int total = 100) {
  std::string text;
  for (int step = first; step <= last; ++step) {
    text += " iteration " + std::to_string(step) + "/ " + std::to_string(total) +
            " | consumed samples: 8 | elapsed time per iteration (ms): 1000.0 | global batch size: 8 | lm "
            "loss: 2.0 |\n";
  }
  return text;
}

const std::string kOom = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.\n";

TEST(Verdict, OfATrainingThatRanIsOk) {
  EXPECT_EQ(judged(steps(1, 10, 10), exited(0)).verdict, RunVerdict::kOk);
  EXPECT_EQ(judged(steps(1, 10), exited(0)).verdict, RunVerdict::kOk);
  EXPECT_EQ(judged(steps(1, 10), {}).verdict, RunVerdict::kOk);
}

// ROCm/rocm-cli pull request 284, bghira/SimpleTuner pull request 3183.
TEST(Verdict, IsOutOfMemoryForEachOfItsWordings) {
  for (const char* text :
       {"torch.OutOfMemoryError", "torch.cuda.OutOfMemoryError: CUDA out of memory.", "HIP out of memory",
        "hipErrorOutOfMemory", "RuntimeError: CUDA error: out of memory"}) {
    const RunJudgement judgement = judged(std::string("starting\n") + text + "\nlast line\n", exited(1));
    EXPECT_EQ(judgement.verdict, RunVerdict::kOutOfMemory) << text;
    EXPECT_EQ(judgement.evidence.file, "rank0.log");
    EXPECT_EQ(judgement.evidence.line, 2);
    EXPECT_EQ(judgement.evidence.text, text);
  }
}

TEST(Verdict, TakesAnAllocatorsComplaintSeriouslyWhenAKernelBreaksAfterIt) {
  const std::string hint = "[W HIPCachingAllocator] memory mapping of 512 MiB failed: out of memory\n";
  EXPECT_EQ(judged(hint + "RuntimeError: HIP error: invalid argument\n", exited(1)).verdict,
            RunVerdict::kOutOfMemory);
  EXPECT_EQ(judged("AssertionError: before\n" + hint, exited(1)).verdict, RunVerdict::kConfigurationError);
  EXPECT_EQ(judged(hint + steps(1, 10, 10), exited(0)).verdict, RunVerdict::kOk);
}

TEST(Verdict, IsNotOutOfMemoryForAnyOldFailure) {
  EXPECT_EQ(judged("Engine core initialization failed\n", exited(1)).verdict, RunVerdict::kCrashed);
  EXPECT_EQ(judged("INFO lower it to avoid running out of memory\n" + steps(1, 10, 10), exited(0)).verdict,
            RunVerdict::kOk);
}

TEST(Verdict, FindsTheRankThatRanOutOfMemoryAmongThoseThatWaited) {
  const LogReport report = report_of({{"rank_0.log", steps(1, 3) + "rank 0: collective timeout\n"},
                                      {"rank_5.log", "loading\n" + kOom},
                                      {"rank_1.log",
                                       "RuntimeError: NCCL error: remote process exited or there was a "
                                       "network error\n"}},
                                     exited(1));
  EXPECT_EQ(report.judgement.verdict, RunVerdict::kOutOfMemory);
  EXPECT_EQ(report.judgement.evidence.file, "rank_5.log");
  EXPECT_EQ(report.judgement.evidence.line, 2);
}

TEST(Verdict, IsOutOfMemoryEvenWhenAPipeHidTheExitStatus) {
  EXPECT_EQ(judged(steps(1, 5) + kOom, exited(0)).verdict, RunVerdict::kOutOfMemory);
}

TEST(Verdict, IsOkWhenTrainingWentOnFromAnError) {
  const RunJudgement judgement = judged(steps(1, 3, 10) + kOom + steps(4, 10, 10), exited(0));
  EXPECT_EQ(judgement.verdict, RunVerdict::kOk);
  ASSERT_EQ(judgement.notes.size(), 1U);
  EXPECT_THAT(judgement.notes[0], HasSubstr("training went on after rank0.log:4"));
}

// NVIDIA-NeMo/Megatron-Bridge pull request 3767.
TEST(Verdict, IsFragmentationWhenTheAllocatorHeldEnoughInPieces) {
  const RunJudgement judgement = judged(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB. GPU 0 has a total capacity of "
      "79.10 GiB of "
      "which 1.00 GiB is free. Of the allocated memory 60.40 GiB is allocated by PyTorch, and 17.50 GiB is "
      "reserved by "
      "PyTorch but unallocated.\n",
      exited(1));
  EXPECT_EQ(judgement.verdict, RunVerdict::kFragmentation);
  EXPECT_THAT(judgement.suggestion, HasSubstr("expandable_segments:True"));
}

TEST(Verdict, IsFragmentationByThePeaksThatWerePrintedBefore) {
  // 60.4 GiB = 61849.6 MiB allocated, 77.9 GiB = 79769.6 MiB reserved.
  const std::string memory =
      "[Rank 0] (after 2 iterations) memory (MB) | max allocated: 61849.6 | reserved: 1 | max reserved: "
      "79769.6\n";
  EXPECT_EQ(
      judged(memory + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB.\n", exited(1))
          .verdict,
      RunVerdict::kFragmentation);
}

TEST(Verdict, IsOutOfMemoryWhenOneRankWasNotFragmented) {
  const auto message = [](const char* allocated, const char* held) {
    return std::string(
               "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB. Of the allocated "
               "memory ") +
           allocated + " GiB is allocated by PyTorch, and " + held +
           " GiB is reserved by PyTorch but unallocated.\n";
  };
  EXPECT_EQ(report_of({{"0.log", message("60.40", "17.50")}, {"1.log", message("77.00", "0.90")}}, exited(1))
                .judgement.verdict,
            RunVerdict::kOutOfMemory);
}

TEST(Verdict, IsHostOutOfMemoryWhenTheKernelKills) {
  EXPECT_EQ(
      judged(steps(1, 3) + "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0.\n", exited(1))
          .verdict,
      RunVerdict::kHostOutOfMemory);
  EXPECT_EQ(judged(steps(1, 3), exited(137)).verdict, RunVerdict::kHostOutOfMemory);
  EXPECT_EQ(judged(steps(1, 3), {.how = How::kSignalled, .signal = SIGKILL}).verdict,
            RunVerdict::kHostOutOfMemory);
  EXPECT_EQ(
      judged("traceback : Signal 9 (SIGKILL) received by PID 12\nChildFailedError\n", exited(1)).verdict,
      RunVerdict::kHostOutOfMemory);
}

TEST(Verdict, OfProcessesThatWeKilledIsNotTheirs) {
  EXPECT_EQ(judged("Signal 9 (SIGKILL) received by PID 12\n", {.how = How::kTimeLimit}).verdict,
            RunVerdict::kTimeOut);
}

TEST(Verdict, IsNotANumberWhenTheLossIsNone) {
  const std::string nan =
      " iteration 4/ 9 | consumed samples: 8 | elapsed time per iteration (ms): 1.0 | lm loss: NAN |\n";
  const RunJudgement judgement = judged(steps(1, 3, 9) + nan + steps(5, 9, 9), exited(0));
  EXPECT_EQ(judgement.verdict, RunVerdict::kNotANumber);
  EXPECT_EQ(judgement.evidence.line, 4);
  EXPECT_EQ(judged(steps(1, 3) + "AssertionError: Rank 7: found NaN in local forward loss calculation.\n",
                   exited(1))
                .verdict,
            RunVerdict::kNotANumber);
}

TEST(Verdict, IsNodeFailure) {
  EXPECT_EQ(
      judged(steps(1, 3) +
                 "NVRM: Xid (PCI:0000:65:00): 79, pid=1, GPU has fallen off the bus.\nRuntimeError: x\n",
             exited(1))
          .verdict,
      RunVerdict::kNodeFailure);
  EXPECT_EQ(judged(steps(1, 3), {.how = How::kNodeFailed, .detail = "NODE_FAIL"}).verdict,
            RunVerdict::kNodeFailure);
}

TEST(Verdict, IsLaunchFailure) {
  EXPECT_EQ(judged("", exited(0)).verdict, RunVerdict::kLaunchFailure);
  EXPECT_EQ(judged("hello\n", exited(0)).verdict, RunVerdict::kLaunchFailure);
  EXPECT_EQ(judged("sh: 1: torchrun: not found\n", exited(127)).verdict, RunVerdict::kLaunchFailure);
  EXPECT_EQ(judged("ModuleNotFoundError: No module named 'megatron'\n", exited(1)).verdict,
            RunVerdict::kLaunchFailure);
  EXPECT_EQ(judged("", {.how = How::kNeverBegan, .detail = "no such file"}).verdict,
            RunVerdict::kLaunchFailure);
  EXPECT_EQ(judged("", {}).verdict, RunVerdict::kLaunchFailure);
}

TEST(Verdict, PrefersTheErrorThatEndedTheRunToAnImportThatWasCaught) {
  const RunJudgement judgement =
      judged("ModuleNotFoundError: No module named 'apex'\nAssertionError: 7 heads\n", exited(1));
  EXPECT_EQ(judgement.verdict, RunVerdict::kConfigurationError);
  EXPECT_EQ(judgement.evidence.text, "AssertionError: 7 heads");
}

TEST(Verdict, IsConfigurationErrorBeforeTheFirstStepAndACrashAfterIt) {
  EXPECT_EQ(judged("[rank0]: AssertionError: 7 heads\nChildFailedError:\n", exited(1)).verdict,
            RunVerdict::kConfigurationError);
  EXPECT_EQ(judged(steps(1, 3) + "[rank0]: AssertionError: x\n", exited(1)).verdict, RunVerdict::kCrashed);
}

TEST(Verdict, OfACrashAtTheVeryEndKeepsTheMeasurement) {
  EXPECT_EQ(judged(steps(1, 10, 10) + "RuntimeError: destroy_process_group\n", exited(1)).verdict,
            RunVerdict::kOk);
  EXPECT_EQ(judged(steps(1, 10, 10), exited(1)).verdict, RunVerdict::kOk);
}

TEST(Verdict, IsTimeOutWhenNoStepWasPrintedInTime) {
  const LogReport report = report_of({{"0.log", "loading\n"}}, {.how = How::kTimeLimit});
  EXPECT_EQ(report.judgement.verdict, RunVerdict::kTimeOut);
  EXPECT_FALSE(report.steady.tflops_per_gpu);  // not 0 TFLOP/s
  EXPECT_FALSE(report.steady.step_time_s);
}

TEST(Verdict, IsOkWhenStepsStillCameAtTheTimeLimit) {
  RunEnd end{.how = How::kTimeLimit};
  end.since_last_step_s = 1.5;
  EXPECT_EQ(judged(steps(1, 30), end).verdict, RunVerdict::kOk);
  end.since_last_step_s = 60;  // steps took a second
  EXPECT_EQ(judged(steps(1, 30), end).verdict, RunVerdict::kHang);
}

TEST(Verdict, IsHangWhenStepsStopComing) {
  RunEnd end{.how = How::kNoProgress};
  end.since_last_step_s = 300;
  const RunJudgement judgement =
      judged(steps(1, 3) + "Watchdog caught collective operation timeout: x\n", end);
  EXPECT_EQ(judgement.verdict, RunVerdict::kHang);
  EXPECT_THAT(judgement.notes, testing::ElementsAre(HasSubstr("ranks waited in a collective")));
  EXPECT_EQ(judged("Watchdog caught collective operation timeout: x\n", exited(1)).verdict,
            RunVerdict::kHang);
}

TEST(Verdict, IsInterruptedWhateverTheLogsSay) {
  EXPECT_EQ(judged(kOom, {.how = How::kInterrupted}).verdict, RunVerdict::kInterrupted);
}

TEST(Verdict, IsTooShortWithOneStep) {
  EXPECT_EQ(judged(steps(1, 1, 1), exited(0)).verdict, RunVerdict::kTooShort);
}

TEST(Verdict, OfASilentCrashSaysSo) {
  const RunJudgement judgement = judged(steps(1, 3) + "bye\n", exited(3));
  EXPECT_EQ(judgement.verdict, RunVerdict::kCrashed);
  EXPECT_THAT(judgement.message, HasSubstr("exit status 3"));
  EXPECT_EQ(judgement.evidence.text, "bye");
}

TEST(VerdictWords, AreAllDifferent) {
  std::vector<std::string> words;
  for (int i = 0; i <= static_cast<int>(RunVerdict::kTooShort); ++i)
    words.emplace_back(word(static_cast<RunVerdict>(i)));
  std::ranges::sort(words);
  EXPECT_EQ(std::ranges::adjacent_find(words), words.end());
}

}  // namespace
}  // namespace sextant::backends
