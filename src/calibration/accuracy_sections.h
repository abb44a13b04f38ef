// Sections of the accuracy page that look beyond one projection of each row: rows left out, a model without
// physics, published tools, repeated runs, published pairs, fitted parameters.
#pragma once

#include <string>

#include "calibration/record.h"
#include "calibration/validate.h"

namespace sextant::calibration {

/// Errors of rows that were seen and left out, by the slices that goals are set for, beside the goals and the
/// null model. Rows of `validation` that the record does not know are not counted.
std::string left_out_section(const Validation& validation, const FitRecord& record);

/// Errors that other tools print or showed on the same publishers' rows, quoted.
std::string peers_section(const Validation& validation);

/// How far runs of one configuration lie apart, in one release of the software and over releases: what no
/// projection can undercut.
std::string noise_section(const Validation& validation);

/// Published runs with a projection by their publisher, never fitted, and what other fillings of their blanks
/// would give.
std::string pairs_section(const Validation& pairs);

/// Every fitted parameter, its prior and its posterior.
std::string parameters_section(const FitRecord& record);

}  // namespace sextant::calibration
