// What a fit leaves behind beside its parameters, so that pages can show it without fitting again: the errors
// of every row, seen and left out, and each parameter's prior and posterior.
#pragma once

#include <string>
#include <vector>

#include "calibration/fit.h"

namespace sextant::calibration {

struct FitRecord {
  std::vector<CrossedRow> rows;
  std::vector<FittedParameter> parameters;
};

/// Writes `rows.csv` and `parameters.csv` into `folder`. Throws base::OutsideError when the disk refuses.
void write_record(const Calibration& calibration, const std::string& folder);

/// Reads them back. Throws base::UserError with file and line for what is no record.
FitRecord read_record(const std::string& folder);

}  // namespace sextant::calibration
