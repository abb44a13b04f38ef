// `sextant calibrate`: the efficiency parameters fitted to measured runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tuner/json.h"

namespace sextant::tuner {

struct CalibrateFlags {
  std::vector<std::string> tables;       ///< --table CSV, repeatable
  std::vector<std::string> collectives;  ///< --nccl-tests LOG, repeatable
  std::vector<std::string> products;     ///< --gemm-sweep CSV, repeatable
  std::string cluster;  ///< --cluster FILE|NAME, as ValidateFlags; of benchmarks, what they ran on
  std::string out;      ///< --out FILE: where the new efficiency.yaml goes
  bool refine = false;  ///< --refine: start from the calibration in use, not from the priors
  std::string record;   ///< --record FOLDER: errors of every row, seen and left out; empty: none
  int folds = 5;        ///< of the cross-validation behind the intervals; 0: keep the intervals
};

/// Fits what data/calibration/priors.yaml allows and writes the calibration file in use with the new values
/// to `out`. JSON: {rows, mean_abs_log_before, mean_abs_log_after, mean_abs_log_crossed, parameters:[{block,
/// name, prior, value, deviation}], out}. Throws base::UserError for tables that cannot be read.
/// Without tables, the accelerator's block takes what benchmarks of the cluster measured: {samples,
/// mean_abs_log_before, mean_abs_log_after, parameters:[{block, name, prior, value, deviation, samples}],
/// furthest, notes, out}.
Json calibrate(const CalibrateFlags& flags, const std::function<void(const std::string& line)>& progress);

}  // namespace sextant::tuner
