// `sextant validate`: how wrong are the projections on published runs?
#pragma once

#include <string>
#include <vector>

#include "tuner/json.h"

namespace sextant::tuner {

struct ValidateFlags {
  std::vector<std::string> tables;  ///< --table CSV, repeatable
  std::string
      cluster;  ///< --cluster FILE|NAME: the accelerator of rows that name none, or that name this one
  std::string markdown;         ///< --markdown FILE: errors of time as a page; empty: none
  std::string record;           ///< --record FOLDER: of `calibrate`, for the page; empty: none
  std::string pairs;            ///< --pairs CSV: published pairs, for the page; empty: none
  std::string memory_markdown;  ///< --memory-markdown FILE: errors of memory as a page
};

/// The JSON document of the command (docs/reference/json.md); shares are fractions. Throws base::UserError
/// for a table that cannot be read.
Json validate(const ValidateFlags& flags);

/// Whether at least one row of the tables could be projected.
bool any_projected(const Json& document);

/// Whether the mean absolute error of time over all rows (of memory where no row has a time) is at most
/// `percent`.
bool within(const Json& document, double percent);

}  // namespace sextant::tuner
