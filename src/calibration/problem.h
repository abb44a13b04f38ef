// The least-squares problem that calibration solves: rows with a measured step time, parameters with priors.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/fit.h"
#include "calibration/least_squares.h"
#include "calibration/row_job.h"

namespace sextant::calibration {

/// A row reduced to what a fit needs.
struct FitRow {
  std::string id;
  RowJob job;
  double measured_s = 0;
  std::string group;  ///< publisher × model × accelerator
  std::string framework, version, family, accelerator;

  std::string slice() const { return group.substr(0, group.find('|')); }
};

/// Rows of the table with a time and a job whose batch is printed: a batch that was chosen for a row says
/// nothing of how fast it runs. `cluster`: as row_job.
std::vector<FitRow> fit_rows(std::span<const MeasuredRow> rows, const cluster::Cluster* cluster);

/// data/calibration/priors.yaml. Throws base::UserError for a broken file.
std::vector<FittedParameter> read_priors();

/// Whether a parameter of `block` can change the efficiency of `row`.
bool reaches(const std::string& block, const FitRow& row);

class Problem {
 public:
  Problem(std::vector<FitRow> rows, std::vector<FittedParameter> parameters);

  const std::vector<FitRow>& rows() const { return rows_; }
  const std::vector<FittedParameter>& parameters() const { return parameters_; }

  /// The calibration file with parameters at exp(x).
  EfficiencyTable table(const std::vector<double>& x) const;
  /// ln(projected/measured) of some rows.
  std::vector<double> residuals(const std::vector<double>& x, const std::vector<std::size_t>& indices) const;
  /// Fits on the rows of `chosen`.
  LeastSquaresResult fit(const std::vector<std::size_t>& chosen) const;

 private:
  std::vector<FitRow> rows_;
  std::vector<FittedParameter> parameters_;
};

}  // namespace sextant::calibration
