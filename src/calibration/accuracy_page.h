// Validation as pages for the documentation: docs/accuracy.md and docs/memory_accuracy.md.
#pragma once

#include <string>
#include <vector>

#include "calibration/record.h"
#include "calibration/validate.h"

namespace sextant::calibration {

/// What a page says of the tables that its rows are from.
struct PageTables {
  std::vector<std::string> files;
  bool fitted = false;                ///< all are the repository's own, which the parameters were fitted on
  const FitRecord* record = nullptr;  ///< errors of rows left out and the fitted parameters; may be null
  const Validation* pairs = nullptr;  ///< published pairs; may be null
};

/// Errors of time by publisher, the rows that are furthest off, and what was left out and why.
std::string time_page(const Validation& validation, const PageTables& tables);

/// Errors of memory: Megatron-LM's functional tests byte by byte, complete rows of others, the rest, and
/// verdicts.
std::string memory_page(const Validation& validation, const PageTables& tables);

}  // namespace sextant::calibration
