#include "report/schedule_rows.h"

#include <gtest/gtest.h>

namespace sextant::report {
namespace {

using pipeline::Kind;
using pipeline::Operation;

/// A stage that works in [0, 2) and [3, 4): F of micro-batch 0 and 1, then their backward.
const std::vector<Operation> kRow = {{.microbatch = 0, .kind = Kind::kForward, .start_s = 0, .end_s = 1},
                                     {.microbatch = 1, .kind = Kind::kForward, .start_s = 1, .end_s = 2},
                                     {.microbatch = 0, .kind = Kind::kBackward, .start_s = 3, .end_s = 3.5},
                                     {.microbatch = 1, .kind = Kind::kBackward, .start_s = 3.5, .end_s = 4}};

std::vector<int> shown(const std::vector<CellRun>& runs) {
  std::vector<int> cells;
  for (const CellRun& run : runs)
    cells.insert(cells.end(), static_cast<std::size_t>(run.count), run.operation);
  return cells;
}

TEST(Cells, ShowTheStepThatRunsInThem) {
  EXPECT_EQ(shown(cell_runs(kRow, 0.5, 8)), (std::vector{0, 0, 1, 1, -1, -1, 2, 3}));
}

TEST(Cells, LongerThanAStepShowTheKindThatFillsMost) {
  // [0, 2.5): forwards 2 s; [2.5, 5): waiting 1.5 s against 1 s.
  EXPECT_EQ(shown(cell_runs(kRow, 2.5, 2)), (std::vector{0, -1}));
}

TEST(Cells, StepsOfOneKindCountTogetherAgainstAnother) {
  const std::vector<Operation> row = {
      {.microbatch = 0, .kind = Kind::kBackwardWeight, .start_s = 0, .end_s = 4},
      {.microbatch = 1, .kind = Kind::kForward, .start_s = 4, .end_s = 7},
      {.microbatch = 2, .kind = Kind::kForward, .start_s = 7, .end_s = 9}};
  EXPECT_EQ(shown(cell_runs(row, 10, 1)), std::vector{1});
}

TEST(Cells, WithEqualSharesShowWhatComesFirst) {
  EXPECT_EQ(shown(cell_runs(kRow, 4, 1)), std::vector{0});  // 2 s F, 1 s BW, 1 s waiting
  const std::vector<Operation> late = {{.kind = Kind::kForward, .start_s = 1, .end_s = 2}};
  EXPECT_EQ(shown(cell_runs(late, 2, 1)), std::vector{0});  // work before waiting
}

TEST(Cells, OfStepsThatTakeNoTimeStayEmpty) {
  const std::vector<Operation> row = {{.kind = Kind::kForward, .start_s = 1, .end_s = 1}};
  EXPECT_EQ(shown(cell_runs(row, 1, 2)), (std::vector{-1, -1}));
}

TEST(Shares, AddUpToTheTimeInSteps) {
  const auto cells = kind_shares(kRow, 2, 2);
  EXPECT_EQ(cells[0], (KindShares{1, 0, 0, 0}));
  EXPECT_EQ(cells[1], (KindShares{0, 0, 0, 0.5}));
}

TEST(Grid, IsTheLongestTimeThatAllTimesAreMultiplesOf) {
  EXPECT_DOUBLE_EQ(grid_s(kRow, 0.1), 0.5);
  EXPECT_EQ(grid_s(kRow, 0.6), 0.0);  // half seconds are too short
}

TEST(Grid, SurvivesTheRoundingOfTimes) {
  std::vector<Operation> row;
  for (int i = 0; i < 30; ++i) row.push_back({.start_s = i * 0.1, .end_s = (i + 1) * 0.1});
  EXPECT_NEAR(grid_s(row, 0.01), 0.1, 1e-9);
}

TEST(Grid, IsNothingForTimesWithoutACommonMeasure) {
  const std::vector<Operation> row = {{.start_s = 0, .end_s = 1}, {.start_s = 1, .end_s = 2.718281828}};
  EXPECT_EQ(grid_s(row, 0.05), 0.0);
}

TEST(Live, CountsFromTheStartOfFToTheEndOfTheLastBackward) {
  std::vector<std::pair<double, int>> counts;
  for (const LiveChange& change : live_changes(kRow)) counts.emplace_back(change.start_s, change.live);
  EXPECT_EQ(counts, (std::vector<std::pair<double, int>>{{0, 1}, {1, 2}, {3.5, 1}, {4, 0}}));
}

TEST(Live, LastsUntilTheWeightGradientWhereTheBackwardIsSplit) {
  const std::vector<Operation> row = {{.kind = Kind::kForward, .start_s = 0, .end_s = 1},
                                      {.kind = Kind::kBackwardInput, .start_s = 1, .end_s = 2},
                                      {.kind = Kind::kBackwardWeight, .start_s = 5, .end_s = 6}};
  const auto changes = live_changes(row);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[1].start_s, 6);
  EXPECT_EQ(changes[1].live, 0);
}

TEST(Live, PeaksWhereTheReplaySaysForEveryAlgorithm) {
  for (const pipeline::Algorithm algorithm : pipeline::all_algorithms()) {
    const int chunks = pipeline::required_chunks(algorithm) == 0 ? 3 : pipeline::required_chunks(algorithm);
    const pipeline::Shape shape{.stages = 4, .chunks = chunks, .microbatches = 12};
    const auto durations = pipeline::uniform_durations(shape, 1.0, 1.5, 0.5, 0.1);
    const auto steps = pipeline::operations(algorithm, shape, durations);
    const auto rows = rows_of(steps);
    const pipeline::Replay replay = pipeline::replay(algorithm, shape, durations);
    ASSERT_EQ(rows.size(), 4U);
    for (std::size_t stage = 0; stage < rows.size(); ++stage) {
      int peak = 0;
      for (const LiveChange& change : live_changes(rows[stage])) peak = std::max(peak, change.live);
      EXPECT_EQ(peak, replay.peak_live_chunks[stage]) << pipeline::name(algorithm) << " stage " << stage;
    }
  }
}

TEST(Times, ShareTheUnitOfTheLongest) {
  EXPECT_EQ(time_text(33, unit_of(33)), "33 s");
  EXPECT_EQ(time_text(0.0125, unit_of(0.9)), "12.5 ms");
  EXPECT_EQ(time_text(2e-6, unit_of(5e-6)), "2 us");
}

}  // namespace
}  // namespace sextant::report
