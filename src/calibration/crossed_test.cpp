#include "calibration/crossed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "calibration/record.h"
#include "cluster/catalogue.h"
#include "model/catalogue.h"

namespace sextant::calibration {
namespace {

FitRow row(const std::string& group, double measured_s) {
  FitRow r;
  r.group = group;
  r.framework = "mine";
  r.family = "hopper";
  r.accelerator = "h100-80";
  r.measured_s = measured_s;
  training::Job& job = r.job.job;
  job.model = std::make_shared<const model::Model>(model::find_in_catalogue("llama-3.1-8b")->model);
  job.cluster = std::make_shared<const cluster::Cluster>(cluster::find_accelerator("h100-80")->usual);
  job.layout.world = 8;
  job.layout.global_batch = 8;
  job.layout.sequence_tokens = 4096;
  return r;
}

TEST(Folds, OfGroupsKeepAGroupTogether) {
  const std::vector<FitRow> rows = {row("a", 1), row("b", 1), row("a", 1), row("c", 1), row("b", 1)};
  EXPECT_EQ(folds_of_groups(rows, 2), (std::vector<int>{0, 1, 0, 0, 1}));
  EXPECT_EQ(folds_of_rows(5, 2), (std::vector<int>{0, 1, 0, 1, 0}));
}

TEST(NullModel, ProjectsTheMedianUtilisationOfTheOtherFolds) {
  // Equal work: utilisation is one over time, and the median of the others' 2 s and 8 s is 4 s in logarithms.
  const std::vector<FitRow> rows = {row("a", 5), row("b", 2), row("b", 8)};
  const std::vector<double> residuals = null_residuals(rows, {0, 1, 1}, 2);
  EXPECT_NEAR(residuals[0], std::log(4.0 / 5.0), 1e-12);
  EXPECT_NEAR(residuals[1], std::log(5.0 / 2.0), 1e-12);
  EXPECT_NEAR(residuals[2], std::log(5.0 / 8.0), 1e-12);
}

TEST(Record, ComesBackAsItWasWritten) {
  const std::string folder = testing::TempDir() + "sextant_record";
  Calibration calibration;
  calibration.crossed = {{"A-1", 0.1, -0.2, 0.3, 0.4, -0.5}};
  calibration.parameters = {{.block = "defaults", .name = "host_norm", .prior = 4, .width = 0.3}};
  calibration.parameters[0].rows = "2 rows of A, B";
  write_record(calibration, folder);
  const FitRecord record = read_record(folder);
  ASSERT_EQ(record.rows.size(), 1U);
  EXPECT_EQ(record.rows[0].id, "A-1");
  EXPECT_DOUBLE_EQ(record.rows[0].groups, 0.3);
  EXPECT_DOUBLE_EQ(record.rows[0].null_groups, -0.5);
  ASSERT_EQ(record.parameters.size(), 1U);
  EXPECT_DOUBLE_EQ(record.parameters[0].width, 0.3);
  EXPECT_EQ(record.parameters[0].rows, "2 rows of A, B");
  base::write_file(folder + "/rows.csv", "id,fitted\nA-1,0.1\n");
  EXPECT_THROW(read_record(folder), base::UserError);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sextant::calibration
