#include "tuner/schedule.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace sextant::tuner {
namespace {

ScheduleFlags flags(const std::string& algorithm, int stages, int microbatches) {
  return {
      .algorithm = algorithm, .stages = std::to_string(stages), .microbatches = std::to_string(microbatches)};
}

Schedule schedule_of(const ScheduleFlags& flags) { return schedule(read_schedule_flags(flags)); }

std::string fault_of(const ScheduleFlags& flags) {
  try {
    read_schedule_flags(flags);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

TEST(ScheduleFlags, TimesOfStagesAreSharedOutOverTheirChunks) {
  ScheduleFlags f = flags("zb-v", 2, 4);
  f.forward = "1, 3";
  EXPECT_EQ(read_schedule_flags(f).durations.forward_s, (std::vector{0.5, 0.5, 1.5, 1.5}));
  f.forward = "3";
  EXPECT_EQ(read_schedule_flags(f).durations.forward_s, std::vector(4, 1.5));
}

TEST(ScheduleFlags, TimesOfChunksAreTakenAsTheyAre) {
  ScheduleFlags f = flags("zb-v", 2, 4);
  f.backward_input = "1,2,3,4";
  EXPECT_EQ(read_schedule_flags(f).durations.backward_input_s, (std::vector{1.0, 2.0, 3.0, 4.0}));
  EXPECT_EQ(read_schedule_flags(f).durations.backward_weight_s, std::vector(4, 0.5));
}

TEST(ScheduleFlags, ASendIsItsTimeOrBytesOverBandwidth) {
  ScheduleFlags f = flags("1f1b", 2, 4);
  f.send_bytes = "67108864";
  f.bandwidth = "1073741824";
  f.send_latency = "1e-5";
  EXPECT_EQ(read_schedule_flags(f).durations.forward_send_s, std::vector(2, 0.0625));
  EXPECT_EQ(read_schedule_flags(f).durations.send_latency_s, 1e-5);
  f.send = "1";
  EXPECT_TRUE(fault_of(f).starts_with("--send 1: contradicts")) << fault_of(f);
}

TEST(ScheduleFlags, NumbersOutOfRangeAreFaultsOfTheirFlag) {
  for (const char* wrong : {"", " ", "-1", "nan", "inf", "1e300", "1e999", "x", "1,,2", "1,2,3"}) {
    ScheduleFlags f = flags("1f1b", 2, 4);
    f.backward_weight = wrong;
    EXPECT_TRUE(fault_of(f).starts_with("--backward-weight")) << wrong << ": " << fault_of(f);
  }
  for (const char* wrong : {"", "0", "-1", "1.5", "1e2", "99999999999999999999"}) {
    ScheduleFlags f = flags("1f1b", 2, 4);
    f.microbatches = wrong;
    EXPECT_TRUE(fault_of(f).starts_with("--microbatches")) << wrong << ": " << fault_of(f);
    f = flags("1f1b", 2, 4);
    f.max_live = wrong;
    EXPECT_TRUE(fault_of(f).starts_with("--max-live")) << wrong << ": " << fault_of(f);
  }
}

TEST(ScheduleFlags, ALongFaultyListIsCutInTheMessage) {
  ScheduleFlags f = flags("1f1b", 2, 4);
  f.forward = std::string(10'000, '1');
  EXPECT_LT(fault_of(f).size(), 20'000U);
  f.forward = "1";
  for (int i = 0; i < 5000; ++i) *f.forward += ",1";
  EXPECT_LT(fault_of(f).size(), 200U) << fault_of(f);
}

TEST(Schedule, WithFewerMicrobatchesThanStagesRunsEachOnce) {
  // Four stages, two micro-batches, F 1 and BW 2: (2 + 4 - 1)·3 = 15 (AMD-AGI/Primus pull request 1032).
  ScheduleFlags f = flags("1f1b", 4, 2);
  const Schedule answer = schedule_of(f);
  EXPECT_DOUBLE_EQ(answer.replay.makespan_s, 15);
  EXPECT_EQ(answer.replay.peak_live_microbatches, (std::vector{2.0, 2.0, 2.0, 1.0}));
  EXPECT_EQ(answer.operations.size(), 4U * 2 * 2);
}

TEST(Schedule, BubbleFractionIsOfTheIdealTime) {
  // Narayanan et al. 2021, section 2.2: (p - 1)/m, and with v chunks (p - 1)/(m·v).
  ScheduleFlags f = flags("1f1b", 8, 32);
  EXPECT_DOUBLE_EQ(schedule_document(schedule_of(f)).at("bubble_fraction").get<double>(), 7.0 / 32);
  f.algorithm = "interleaved";
  f.chunks = "4";
  EXPECT_DOUBLE_EQ(schedule_document(schedule_of(f)).at("bubble_fraction").get<double>(), 7.0 / 128);
}

TEST(Schedule, ThatCannotBeSaysWhatWould) {
  ScheduleFlags f = flags("interleaved", 4, 9);
  f.chunks = "2";
  Schedule answer = schedule_of(f);
  ASSERT_TRUE(answer.refusal);
  EXPECT_EQ(answer.refusal->fix, "--microbatches 8 or 12");
  f.chunks = "1";
  f.microbatches = "8";
  EXPECT_EQ(schedule_of(f).refusal->fix, "--chunks 2");
  EXPECT_TRUE(answer.operations.empty());
  EXPECT_FALSE(schedule_document(answer).at("legal").get<bool>());
}

TEST(Schedule, OfStagesThatDifferTakesTheShortestOrderUnlessTheLaunchedOneIsAskedFor) {
  // Stage 2 has no weight gradients to hold back, stage 1 large ones: 1F1B's order with W right behind B
  // wins.
  ScheduleFlags f = flags("zb-h1", 3, 12);
  f.forward = "0.1,1,7.5";
  f.backward_input = "0.1,1,7.5";
  f.backward_weight = "0.1,10,0";
  const Schedule tailored = schedule_of(f);
  f.as_launched = true;
  const Schedule launched = schedule_of(f);
  f.algorithm = "1f1b";
  EXPECT_LE(tailored.replay.makespan_s, schedule_of(f).replay.makespan_s);
  EXPECT_GT(launched.replay.makespan_s, schedule_of(f).replay.makespan_s);
  EXPECT_EQ(tailored.launched_makespan_s, launched.replay.makespan_s);
  EXPECT_FALSE(launched.launched_makespan_s);
  EXPECT_EQ(schedule_document(tailored).at("order"), "tailored");
  EXPECT_EQ(schedule_document(launched).at("order"), "launched");
}

TEST(Schedule, WithinALimitKeepsItOrNamesTheLeastThatWorks) {
  ScheduleFlags f = flags("zb-h2", 4, 8);
  f.max_live = "4";
  for (const double live : schedule_of(f).replay.peak_live_microbatches) EXPECT_LE(live, 4);
  f.algorithm = "1f1b";
  f.max_live = "4,3,2,1";
  EXPECT_FALSE(schedule_of(f).refusal);
  f.max_live = "3";
  const Schedule answer = schedule_of(f);
  ASSERT_TRUE(answer.refusal);
  EXPECT_EQ(answer.refusal->rule, "max-live");
  EXPECT_TRUE(answer.refusal->message.contains("least limit that works is 4")) << answer.refusal->message;
}

TEST(Schedule, JsonHoldsOneOperationALine) {
  const Schedule answer = schedule_of(flags("zb-h1", 2, 3));
  const std::string text = schedule_json(answer);
  const Json document = Json::parse(text);
  ASSERT_EQ(document.at("operations").size(), 2U * 3 * 3);
  EXPECT_EQ(document.at("operations")[0].dump(),
            R"({"stage":0,"chunk":0,"microbatch":0,"kind":"F","start_s":0,"end_s":1})");
  EXPECT_TRUE(text.contains("\n    {\"stage\": 0, \"chunk\": 0, \"microbatch\": 0, \"kind\": \"F\","));
}

}  // namespace
}  // namespace sextant::tuner
