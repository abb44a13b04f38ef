// Whole logs: pace, ranks, restarts, long and hostile input.
#include "backends/log_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"

namespace sextant::backends {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

LogReport report_of(const std::vector<std::string>& files, const LogSettings& settings = {}) {
  TrainingLog log(settings);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::size_t file = log.add_file("rank_" + std::to_string(i) + ".log");
    log.feed(file, files[i]);
  }
  return log.report({.how = RunEnd::How::kExited});
}

std::string megatron_step(int step, double time_ms, int batch = 64) {
  return " iteration " + std::to_string(step) +
         "/ 500000 | consumed samples: 128 | elapsed time per iteration (ms): " + std::to_string(time_ms) +
         " | global batch size: " + std::to_string(batch) + " | lm loss: 2.0 |\n";
}

std::string megatron_series(const std::vector<double>& times_ms) {
  std::string text;
  for (std::size_t i = 0; i < times_ms.size(); ++i)
    text += megatron_step(static_cast<int>(i) + 1, times_ms[i]);
  return text;
}

std::string titan_step(int rank, int step, const std::string& rate) {
  return "[rank" + std::to_string(rank) +
         "]:[titan] 2025-01-15 08:30:00,123 - root - INFO - step: " + std::to_string(step) +
         "  loss: 11.5000  grad_norm:  1.9000  memory: 70.00GiB(88.50%)  tps: " + rate +
         "  tflops: 200.00  mfu: 20.22%\n";
}

TEST(Pace, LeavesTheFirstStepOut) {
  const LogReport report = report_of({megatron_series({23000, 15000, 15010, 15020})});
  EXPECT_EQ(report.steady.dropped_first, 1U);
  EXPECT_EQ(report.steady.dropped_settling, 0U);
  EXPECT_DOUBLE_EQ(report.steady.step_time_s->mean, 15.010);
  EXPECT_DOUBLE_EQ(report.steady.step_time_s->median, 15.010);
  EXPECT_NEAR(report.steady.step_time_s->deviation, 0.010, 1e-12);
  EXPECT_EQ(report.steady.step_time_s->count, 3U);
  EXPECT_FALSE(report.steady.tflops_per_gpu);
  EXPECT_FALSE(report.steady.tokens_per_s_per_gpu);
}

// The ten steps of a published Primus run: auto-tuning goes on in the second.
TEST(Pace, LeavesStepsOutThatStillSettle) {
  const LogReport report =
      report_of({megatron_series({60000, 15442.8, 774.7, 567.0, 493.2, 508.3, 523.4, 529.9, 464.7, 493.5})});
  EXPECT_EQ(report.steady.dropped_first, 1U);
  EXPECT_EQ(report.steady.dropped_settling, 2U);
  EXPECT_NEAR(report.steady.step_time_s->mean, (567.0 + 493.2 + 508.3 + 523.4 + 529.9 + 464.7 + 493.5) / 7e3,
              1e-9);
}

TEST(Pace, OfAnUnsteadyRunIsNotDroppedAway) {
  const LogReport report = report_of({megatron_series({1, 400, 300, 200, 100})});
  EXPECT_LE(report.steady.dropped_settling, 2U);
  EXPECT_GE(report.steady.step_time_s->count, 2U);
}

TEST(Pace, ComesFromTheLogsBatchAndTheConfiguredSequence) {
  LogSettings settings;
  settings.sequence_length_tokens = 4096;
  settings.gpus = 16;
  settings.global_batch = 32;  // the log says 64
  const LogReport report = report_of({megatron_series({9000, 1000, 2000, 1000, 2000})}, settings);
  // Harmonic mean of 16384 and 8192: four steps of 64 · 4096 tokens in 6 s on 16 GPUs.
  EXPECT_NEAR(report.steady.tokens_per_s_per_gpu->mean, 4 * 64 * 4096 / 6.0 / 16, 1e-6);
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("a global batch of 64, the configuration 32")));
}

TEST(Pace, SaysWhenThePrintedRateContradictsTheConfiguration) {
  LogSettings settings;
  settings.sequence_length_tokens = 8192;  // twice what ran
  settings.gpus = 8;
  std::string text;
  for (int step = 1; step <= 4; ++step) {
    text += "iteration " + std::to_string(step) +
            "/ 50 | elapsed time per iteration (ms): 1000.0 | tokens per GPU (tokens/s/GPU): 4096.0 | global "
            "batch size: 8 |\n";
  }
  const LogReport report = report_of({text}, settings);
  EXPECT_DOUBLE_EQ(report.steady.tokens_per_s_per_gpu->mean, 4096);
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("the log prints 4096 tokens/s/GPU")));
}

TEST(Ranks, ThatPrintTheSameStepAreOneStep) {
  std::vector<std::string> separate(8);
  std::string together;
  for (int step = 1; step <= 3; ++step) {
    for (int rank = 0; rank < 8; ++rank) {
      const std::string line = titan_step(rank, step, rank % 2 == 0 ? "12,345" : "12,344");
      separate[static_cast<std::size_t>(rank)] += line;
      together += line;
    }
  }
  for (const auto& files : {separate, std::vector{together}}) {
    const LogReport report = report_of(files);
    ASSERT_EQ(report.steps.size(), 3U);
    EXPECT_EQ(report.steps_seen, 3);
    EXPECT_EQ(report.steps[1].tokens_per_s_per_gpu, 12345);
    EXPECT_EQ(report.memory.reserved_bytes, 70 * base::kGiB);
    EXPECT_THAT(report.formats, ElementsAre("torchtitan"));
  }
}

TEST(Ranks, FillWhatTheOthersDoNotPrintAndTheFullestHasThePeak) {
  const LogReport report = report_of(
      {megatron_step(1, 5000) + megatron_step(2, 1000),
       "{\"step\": 2, \"step_time_s\": 9, \"tflops_per_gpu\": 300, \"memory_allocated_bytes\": 7e9}\n",
       "{\"memory_allocated_bytes\": 8e9}\n"});
  ASSERT_EQ(report.steps.size(), 2U);
  EXPECT_EQ(report.steps[1].time_s, 1);  // the first that was read
  EXPECT_EQ(report.steps[1].tflops_per_gpu, 300);
  EXPECT_EQ(report.memory.allocated_bytes, 8e9);
}

TEST(Ranks, OfAnyOrderGiveTheSameEvidence) {
  const std::string broken = "ValueError: 7 heads\n";
  TrainingLog first({});
  TrainingLog second({});
  for (const char* name : {"a.log", "b.log"}) first.feed(first.add_file(name), broken);
  for (const char* name : {"b.log", "a.log"}) second.feed(second.add_file(name), broken);
  const RunEnd end{.how = RunEnd::How::kExited, .exit_status = 1};
  EXPECT_EQ(first.report(end).judgement.evidence.file, "a.log");
  EXPECT_EQ(second.report(end).judgement.evidence.file, "a.log");
}

TEST(Restarts, DoNotCountStepsTwice) {
  const std::string attempt = megatron_series({9000, 1000, 1000, 1000});
  const LogReport report =
      report_of({attempt + megatron_step(3, 9000) + megatron_step(4, 1000) + megatron_step(5, 1000)});
  EXPECT_EQ(report.steps.size(), 5U);
  EXPECT_EQ(report.steps[2].time_s, 1);
}

TEST(Bridge, GivesItsUtilisationToTheStepThatFollows) {
  const LogReport report =
      report_of({"Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU\n" + megatron_step(1, 9090) +
                 "Step Time : 9.09s GPU utilization: 700.0MODEL_TFLOP/s/GPU\n" + megatron_step(2, 9090)});
  EXPECT_EQ(report.steps[0].tflops_per_gpu, 663.5);
  EXPECT_EQ(report.steps[1].tflops_per_gpu, 700);
}

TEST(Labels, OfRoutingAreRecorded) {
  const LogReport report =
      report_of({"  moe_router_force_load_balancing ................. True\n" + megatron_step(1, 1) +
                 "{\"expert_skew\": 2.5}\n{\"expert_skew\": 1.5}\n"});
  EXPECT_EQ(report.forced_balanced_routing, true);
  EXPECT_EQ(report.expert_skew, 2.5);
  EXPECT_EQ(report_of({megatron_step(1, 1)}).forced_balanced_routing, std::nullopt);
}

TEST(Progress, IsSeenWhileTheLogGrows) {
  TrainingLog log({});
  const std::size_t file = log.add_file("0.log");
  log.feed(file, megatron_step(1, 1000));
  EXPECT_EQ(log.steps_seen(), 1);
  const std::string next = megatron_step(2, 1000);
  log.feed(file, next.substr(0, 40));
  EXPECT_EQ(log.steps_seen(), 1);
  log.feed(file, next.substr(40));
  EXPECT_EQ(log.steps_seen(), 2);
  EXPECT_FALSE(log.broken_by());
  log.feed(file, "ValueError: x\n");
  EXPECT_EQ(log.broken_by(), LogSign::kConfiguration);
  log.feed(file, megatron_step(3, 1000));
  EXPECT_EQ(log.broken_by(), LogSign::kConfiguration);  // others may finish the step they were in
  log.feed(file, megatron_step(4, 1000));
  EXPECT_FALSE(log.broken_by());
}

TEST(LongRuns, AreThinnedEvenly) {
  TrainingLog log({});
  const std::size_t file = log.add_file("0.log");
  const int count = 100000;
  for (int step = 1; step <= count; ++step) log.feed(file, megatron_step(step, step < 3 ? 5000 : 1000));
  const LogReport report = log.report({.how = RunEnd::How::kExited});
  EXPECT_EQ(report.steps_seen, count);
  EXPECT_LE(report.steps.size(), kLogStepsKept);
  EXPECT_GE(report.steps.size(), kLogStepsKept / 4);
  EXPECT_DOUBLE_EQ(report.steady.step_time_s->mean, 1);
}

TEST(HostileLogs, OfAnyBytesAreRead) {
  std::mt19937 random(7);
  const std::string words[] = {"iteration ",
                               "1/2 | ",
                               "elapsed time per iteration (ms): ",
                               "step: ",
                               "tps: ",
                               "nan",
                               "|",
                               "\n",
                               "\r",
                               "\x1b[",
                               "{\"step\": ",
                               "}",
                               "9e999",
                               "-",
                               ",000",
                               "Error:",
                               "Training epoch ",
                               "global_step=",
                               "[",
                               "<",
                               "/",
                               "CurrSamplesPerSec=",
                               "Tried to allocate ",
                               "GiB",
                               " is allocated by PyTorch"};
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) {
      if (random() % 4 == 0) text += static_cast<char>(random());
      text += words[random() % std::size(words)];
    }
    TrainingLog log({});
    const std::size_t file = log.add_file("x");
    for (std::size_t at = 0; at < text.size(); at += 13)
      log.feed(file, std::string_view(text).substr(at, 13));
    log.report({.how = RunEnd::How::kExited, .exit_status = 1});
  }
}

TEST(HugeLogs, AreReadInLinearTimeAndBoundedMemory) {
  // 64 MiB; a second or two is plenty for linear work on a busy machine, quadratic work would never end.
  TrainingLog log({});
  const std::size_t file = log.add_file("0.log");
  const std::string garbage(1 << 20, '\0');
  std::string chatter;
  while (chatter.size() < (1 << 20))
    chatter += "[rank3]: some warning about nothing in particular, 12,345 times\n";
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 32; ++i) {
    log.feed(file, chatter);
    log.feed(file, garbage);
  }
  log.feed(file, "\n" + megatron_step(1, 1000) + megatron_step(2, 1000));
  const LogReport report = log.report({.how = RunEnd::How::kExited});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(report.steps.size(), 2U);
  EXPECT_EQ(report.judgement.verdict, RunVerdict::kOk);
  EXPECT_LT(took.count(), 20);
}

TEST(LogFiles, ThatCannotBeReadAreTheUsersFault) {
  const std::string path = testing::TempDir() + "sextant_log_reader.log";
  std::FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs((megatron_step(1, 2000) + megatron_step(2, 1000)).c_str(), file);
  std::fclose(file);
  EXPECT_DOUBLE_EQ(read_training_logs(std::vector{path}, {}, {}).steady.step_time_s->mean, 1);
  std::remove(path.c_str());
  EXPECT_THROW(read_training_logs(std::vector{path}, {}, {}), base::UserError);
}

}  // namespace
}  // namespace sextant::backends
