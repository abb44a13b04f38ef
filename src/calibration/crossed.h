// Errors of rows that a fit has not seen, and of a model without physics beside them.
//
// Every row is judged four times: by the fit on all rows, by fits that left a fifth of the rows out ("rows":
// this software and model were seen), by fits that left whole groups of publisher × model × accelerator out
// ("groups": they were not), and by a null model, one utilisation for each framework, accelerator and
// precision, left out in the same two ways. Folds are dealt in the order of the table, so that the same
// table gives the same figures.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "calibration/problem.h"

namespace sextant::calibration {

/// The fold of each row when single rows are dealt, and when groups are.
std::vector<int> folds_of_rows(std::size_t count, int folds);
std::vector<int> folds_of_groups(std::span<const FitRow> rows, int folds);

/// ln(projected/measured) of every row under a fit on the other folds. `say` (may be empty) hears of each
/// fold.
std::vector<double> left_out_residuals(const Problem& problem, const std::vector<int>& fold_of, int folds,
                                       const std::function<void(const std::string& line)>& say);

/// The null model on the same folds: the median utilisation of the other folds' rows with this framework,
/// accelerator and precision; where there are none, with this accelerator's family and precision; else of
/// all.
std::vector<double> null_residuals(std::span<const FitRow> rows, const std::vector<int>& fold_of, int folds);

}  // namespace sextant::calibration
