#include "calibration/efficiency_text.h"

#include <gtest/gtest.h>

#include "calibration/least_squares.h"

namespace sextant::calibration {
namespace {

constexpr const char* kFile =
    "# head\n"
    "defaults:\n"
    "  source: first words\n"
    "  gemm_fraction: {bf16: 0.66, fp8: 0.62}  # dense\n"
    "  tile_waste: 0.25  # prior\n"
    "\n"
    "frameworks:\n"
    "  a:\n"
    "    source: >-\n"
    "      rows of a,\n"
    "      many\n"
    "    software_factor: 1.0\n"
    "    families:\n"
    "      hopper:\n"
    "        source: \"a on hopper\"\n"
    "        software_factor: 0.9\n";

TEST(EfficiencyText, ChangesNumbersAndDropsCommentsOnThem) {
  EfficiencyText text(kFile);
  text.set("defaults", "tile_waste", 0.3);
  text.set("defaults", "gemm_fraction.bf16", 0.7);
  text.set("defaults", "gemm_fraction.mxfp8", 0.5);
  text.set("frameworks.a", "fixed_step_s", 0.05);
  text.set("frameworks.a.families.hopper", "software_factor", 0.95);
  const std::string result = text.text();
  EXPECT_NE(result.find("  tile_waste: 0.3\n"), std::string::npos);
  EXPECT_NE(result.find("{bf16: 0.7, fp8: 0.62, mxfp8: 0.5}  # dense\n"), std::string::npos);
  EXPECT_NE(result.find("    software_factor: 1.0\n    fixed_step_s: 0.05\n    families:\n"),
            std::string::npos);
  EXPECT_NE(result.find("        software_factor: 0.95\n"), std::string::npos);
}

TEST(EfficiencyText, MakesABlockOnce) {
  EfficiencyText text(kFile);
  text.add_block("frameworks.b", "runs of b.");
  text.add_block("frameworks.b", "other words.");
  text.set("frameworks.b", "software_factor", 1.1);
  EXPECT_NE(text.text().find("  b:\n    source: runs of b.\n    software_factor: 1.1\n"), std::string::npos);
  EXPECT_EQ(text.text().find("other words"), std::string::npos);
}

TEST(EfficiencyText, ReplacesWhatTheSourceSaysAfterTheMarker) {
  EfficiencyText text(kFile);
  text.set_source_after("frameworks.a", "Fitted:", "on 3 rows.");
  text.set_source_after("frameworks.a", "Fitted:", "on 4 rows.");
  EXPECT_NE(
      text.text().find("    source: >-\n      rows of a, many. Fitted: on 4 rows.\n    software_factor"),
      std::string::npos);
}

TEST(LeastSquares, FindsALineAndIgnoresAnOutlier) {
  // r_i = a + b·t_i − y_i with y = 1 + 2t, except one point that is 5 off.
  const std::vector<double> t{0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<double> y;
  for (const double v : t) y.push_back(1 + 2 * v);
  y[5] += 5;
  ResidualModel model;
  model.count = t.size();
  model.evaluate = [&](const std::vector<double>& x, const std::vector<std::size_t>& indices) {
    std::vector<double> r;
    for (const std::size_t i : indices) r.push_back(x[0] + x[1] * t[i] - y[i]);
    return r;
  };
  std::vector<std::size_t> all{0, 1, 2, 3, 4, 5, 6, 7};
  model.depends = {all, all};
  const std::vector<Unknown> unknowns{{.mean = 0, .width = 10, .low = -20, .high = 20},
                                      {.mean = 1, .width = 10, .low = -20, .high = 20}};
  const LeastSquaresResult fit =
      fit_least_squares(unknowns, model, {.residual_scale = 0.05, .iterations = 60});
  EXPECT_NEAR(fit.x[0], 1.0, 0.05);
  EXPECT_NEAR(fit.x[1], 2.0, 0.02);
  EXPECT_LT(fit.objective, fit.start_objective);
}

TEST(LeastSquares, PriorsHoldWhatDataDoNotSay) {
  ResidualModel model;
  model.count = 1;
  model.evaluate = [](const std::vector<double>& x, const std::vector<std::size_t>& indices) {
    return std::vector<double>(indices.size(), x[0] - 0.1);
  };
  model.depends = {{0}, {}};
  const std::vector<Unknown> unknowns{{.mean = 0, .width = 1, .low = -2, .high = 2},
                                      {.mean = 0.5, .width = 0.1, .low = -2, .high = 2}};
  const LeastSquaresResult fit = fit_least_squares(unknowns, model, {});
  EXPECT_NEAR(fit.x[0], 0.1, 0.01);
  EXPECT_DOUBLE_EQ(fit.x[1], 0.5);
  EXPECT_NEAR(fit.deviation[1], 0.1, 1e-9);
}

}  // namespace
}  // namespace sextant::calibration
