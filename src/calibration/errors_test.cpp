#include "calibration/errors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "calibration/csv.h"
#include "calibration/measured.h"

namespace sextant::calibration {
namespace {

TimeError row(const std::string& id, const std::string& metric, double projected, double measured) {
  return {.id = id,
          .slice = "S",
          .group = "g",
          .metric = metric,
          .projected = projected,
          .measured = measured,
          .low = 0.9 * projected,
          .high = 1.1 * projected};
}

TEST(TimeError, IsOfTimeWhateverTheMetric) {
  EXPECT_NEAR(row("S-1", "step_time_s", 1.1, 1.0).error(), 0.10, 1e-12);
  EXPECT_NEAR(row("S-1", "tokens_per_s_per_gpu", 1000, 1100).error(), 0.10, 1e-12);
}

TEST(Summary, HasMeanMedianBiasAndCoverage) {
  const std::vector<TimeError> errors{row("S-1", "step_time_s", 1.1, 1.0),
                                      row("S-2", "step_time_s", 1.6, 2.0),
                                      row("S-3", "step_time_s", 3.0, 3.0)};
  const SliceErrors s = summarise(errors).front();
  EXPECT_EQ(s.rows, 3);
  EXPECT_NEAR(s.mape, 0.1, 1e-12);
  EXPECT_NEAR(s.median_ape, 0.1, 1e-12);
  EXPECT_NEAR(s.bias, -0.1 / 3, 1e-12);
  EXPECT_NEAR(s.mean_abs_log, (std::log(1.1) - std::log(0.8)) / 3, 1e-12);
  EXPECT_NEAR(s.coverage, 2.0 / 3, 1e-12);
}

TEST(Ranking, RegretIsWhatTheChosenRowLoses) {
  // Projected best is row 2 (1.0), which takes 1.2 where the fastest takes 1.0.
  const std::vector<TimeError> errors{row("S-1", "step_time_s", 1.1, 1.0),
                                      row("S-2", "step_time_s", 1.0, 1.2),
                                      row("S-3", "step_time_s", 2.0, 2.0)};
  const SliceErrors s = summarise(errors).front();
  EXPECT_EQ(s.ranking_groups, 1);
  EXPECT_NEAR(s.regret, 0.2, 1e-12);
  EXPECT_NEAR(s.tau, 1.0 / 3, 1e-12);  // one of three pairs in the wrong order
}

TEST(MemorySummary, CountsMissedAndFalseOutOfMemory) {
  const std::vector<MemoryError> errors{
      {.id = "a", .projected_bytes = 90, .measured_bytes = 100, .fits = true},
      {.id = "b", .projected_bytes = 120, .measured_bytes = 100, .fits = false},
      {.id = "c", .projected_bytes = 50, .fits = true, .out_of_memory = true}};
  const MemorySummary summary = summarise_memory(errors);
  EXPECT_EQ(summary.rows, 2);
  EXPECT_NEAR(summary.mape, 0.15, 1e-12);
  EXPECT_EQ(summary.missed_out_of_memory, 1);
  EXPECT_EQ(summary.false_out_of_memory, 1);
}

TEST(Csv, KeepsQuotedCommasQuotesAndLineEnds) {
  const Csv csv = parse_csv("id,model\r\na,\"x, \"\"y\"\"\nz\"\n\nb,c\n", "t.csv");
  ASSERT_EQ(csv.rows.size(), 2U);
  EXPECT_EQ(csv.rows[0][1], "x, \"y\"\nz");
  EXPECT_EQ(csv.lines[1], 5);
}

TEST(Csv, SaysWhereItIsBroken) {
  const auto message = [](const char* text) {
    try {
      measured_rows(parse_csv(text, "t.csv"));
    } catch (const base::UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message("id,model\na,b,c\n"),
            "t.csv:2: has 3 cells, the header has 2; quote cells that hold commas");
  EXPECT_EQ(message("id,model\na,\"b\n"), "t.csv:2: a quote opened on this line is never closed");
  EXPECT_EQ(message("id,model,tp\na,b,x\n"),
            "t.csv:2: tp: 'x' is no number; leave the cell blank when it was not printed");
  EXPECT_EQ(message("id,tp\na,1\n"),
            "t.csv:1: model: the column is missing; a table of measured runs needs it");
}

TEST(MeasuredRow, KeepsBlanksBlank) {
  const auto rows =
      measured_rows(parse_csv("id,model,tp,step_time_s,status\nVTRAINM-001,GPT,,1.5,ran\n", "t.csv"));
  EXPECT_FALSE(rows[0].tp.has_value());
  EXPECT_EQ(rows[0].step_s, 1.5);
  EXPECT_EQ(rows[0].slice(), "VTRAINM");
}

}  // namespace
}  // namespace sextant::calibration
