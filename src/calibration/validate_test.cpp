// The repository's own measured tables: accuracy that changes may improve but not lose. Limits lie a little
// above what docs/accuracy.md and docs/memory_accuracy.md print.

#include "calibration/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace sextant::calibration {
namespace {

using testing::HasSubstr;

const Validation& training_table() {
  static const Validation validation =
      validate(read_measured("data/calibration/measured/training_measured.csv"));
  return validation;
}
const Validation& memory_table() {
  static const Validation validation =
      validate(read_measured("data/calibration/measured/memory_measured.csv"));
  return validation;
}

TEST(MeasuredTimes, StayWithinTheirLimits) {
  const std::map<std::string, double> limits = {
      {"BLOOM", 0.06},   {"DGXC", 0.07},  {"INTERN", 0.08}, {"KORTH", 0.05},   {"LUMEN", 0.05},
      {"MBRIDGE", 0.11}, {"MPT", 0.04},   {"MTNLG", 0.04},  {"NEMO2407", 0.1}, {"NEMOLONG", 0.08},
      {"PRIMUS", 0.13},  {"TITAN", 0.08}, {"SC21T1", 0.05}, {"SC21T2", 0.05},  {"VTRAINM", 0.09},
      {"VTRAINS", 0.09}, {"all", 0.08}};
  for (const SliceErrors& s : summarise(training_table().times)) {
    const auto limit = limits.find(s.slice);
    if (limit != limits.end()) {
      EXPECT_LT(s.mape, limit->second) << s.slice;
    }
    if (s.slice == "all") {
      EXPECT_GT(s.rows, 780);
    }
  }
}

TEST(MeasuredTimes, LieInsideTheClaimedIntervalsAboutAsOftenAsClaimed) {
  const SliceErrors all = summarise(training_table().times).back();
  EXPECT_GT(all.coverage, 0.87);
  EXPECT_LT(all.coverage, 0.98);
}

TEST(MeasuredTimes, AreSkippedOnlyForAReason) {
  for (const SkippedRow& row : training_table().skipped) {
    EXPECT_THAT(row.reason,
                testing::AnyOf(HasSubstr("not modelled"), HasSubstr("not printed"), HasSubstr("unknown"),
                               HasSubstr("multiply out"), HasSubstr("not built yet")))
        << row.id;
  }
}

TEST(MeasuredTimes, OfAnUnknownModelWithoutNumbersAreSkippedByName) {
  MeasuredRow row;
  row.id = "MINE-1";
  row.model = "foo-9b";
  row.gpu = "H100";
  row.step_s = 1;
  const Validation validation = validate(std::vector<MeasuredRow>{row});
  ASSERT_EQ(validation.skipped.size(), 1U);
  EXPECT_THAT(validation.skipped[0].reason,
              HasSubstr("the model `foo-9b` is not in the catalogue and its columns are blank"));
}

TEST(MeasuredMemory, OfMegatronFunctionalTestsIsExact) {
  double steady = 0, peak = 0;
  int rows = 0;
  for (const MemoryError& e : memory_table().memories) {
    if (!e.functional_test) continue;
    const double steady_error = std::abs(e.steady_projected_bytes / e.steady_measured_bytes - 1);
    EXPECT_LT(steady_error, 0.03) << e.id;
    EXPECT_LT(std::abs(e.error()), 0.10) << e.id;
    steady += steady_error;
    peak += std::abs(e.error());
    ++rows;
  }
  ASSERT_GT(rows, 40);
  EXPECT_LT(steady / rows, 0.01);
  EXPECT_LT(peak / rows, 0.02);
}

TEST(MeasuredMemory, OfOtherPublishersIsWithinTwelvePercentInTheMean) {
  double sum = 0;
  int rows = 0;
  for (const MemoryError& e : memory_table().memories) {
    if (e.functional_test || !e.complete || !e.measured() || e.upper_bound) continue;
    sum += std::abs(e.error());
    ++rows;
  }
  ASSERT_GT(rows, 20);
  EXPECT_LT(sum / rows, 0.12);
}

TEST(MeasuredMemory, VerdictsMissFewRunsThatDied) {
  const MemorySummary training = summarise_memory(training_table().memories);
  EXPECT_LE(training.missed_out_of_memory, 1);  // GH200-023 died inside the optimizer step
  EXPECT_LE(training.false_out_of_memory, 1);   // BLOOM-128 ran within 1 GiB of the device's memory
}

TEST(Validation, DoesNotDependOnTheOrderOfRows) {
  std::vector<MeasuredRow> rows = read_measured("data/calibration/measured/memory_measured.csv");
  rows.resize(12);
  const Validation forwards = validate(rows);
  std::ranges::reverse(rows);
  const Validation backwards = validate(rows);
  ASSERT_EQ(forwards.memories.size(), backwards.memories.size());
  for (std::size_t i = 0; i < forwards.memories.size(); ++i) {
    const MemoryError& same = backwards.memories[backwards.memories.size() - 1 - i];
    EXPECT_EQ(forwards.memories[i].id, same.id);
    EXPECT_EQ(forwards.memories[i].projected_bytes, same.projected_bytes);
  }
}

}  // namespace
}  // namespace sextant::calibration
