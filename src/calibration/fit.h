// Fitting the efficiency parameters to measured times.
//
// What is fitted, and from which prior, stands in data/calibration/priors.yaml: few parameters with a
// physical meaning, each as the logarithm of its value around the prior. Bytes, FLOPs and topology are never
// fitted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "calibration/efficiency_table.h"
#include "calibration/measured.h"

namespace sextant::calibration {

/// ln(projected/measured) of one row's time: fitted on all rows; by fits that left this row, and this row's
/// whole group, out; and by the null model of calibration/crossed.h.
struct CrossedRow {
  std::string id{};
  double fitted = 0;
  double rows = 0, groups = 0;
  double null_rows = 0, null_groups = 0;
};

struct FittedParameter {
  std::string block{}, name{};
  std::vector<std::string> also{};  ///< keys of the block that take the same value: no row tells them apart
  double prior = 0;
  double width = 0;      ///< of ln(value), prior
  double value = 0;      ///< fitted
  double deviation = 0;  ///< of ln(value), after the fit
  std::string rows{};    ///< what the data are: "60 rows of DGXC, NEMO2407"
};

struct Calibration {
  EfficiencyTable table;  ///< the file with the fitted values
  std::vector<FittedParameter> parameters;
  /// By framework, those with enough rows; of models with experts, where "defaults" is all frameworks
  /// together.
  std::map<std::string, double> interval_log_width, moe_interval_log_width;
  std::size_t rows = 0;
  double mean_abs_log_before = 0, mean_abs_log_after = 0;
  double mean_abs_log_crossed =
      0;  ///< of rows predicted by fits that left their group out; 0 when not crossed
  std::vector<CrossedRow> crossed;  ///< the rows one by one, when a record was asked for
};

struct CalibrateOptions {
  const cluster::Cluster* cluster = nullptr;  ///< as row_job (calibration/row_job.h)
  int folds = 5;  ///< of the cross-validation that gives the intervals; below 2: none, intervals stay
  bool refine =
      false;  ///< priors are the values in use, not those of priors.yaml: for a few runs of one's own
  bool record = false;  ///< leave single rows out as well, and keep what every row's errors are
  std::function<void(const std::string& line)> progress;  ///< may be empty
};

/// `text` (an efficiency.yaml) with the fitted values, intervals and, in each changed block's `source`, what
/// they were fitted on.
std::string calibrated_text(const std::string& text, const Calibration& calibration,
                            const std::string& table_name);

/// Fits on every row of `rows` with a time. Cross-validation leaves whole groups out (publisher × model ×
/// accelerator); a framework's interval_log_width becomes the 90th percentile of |ln(projected/measured)| of
/// its left-out rows. Deterministic. Throws base::UserError for a broken priors file.
Calibration calibrate(std::span<const MeasuredRow> rows, const CalibrateOptions& options);

}  // namespace sextant::calibration
