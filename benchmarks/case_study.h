// The space on which searches are compared: Mixtral-8x22B on eight nodes of eight MI355X under Primus, every
// legal layout with its projection.
#pragma once

#include <optional>
#include <string>

#include "search/prior.h"

namespace sextant::benchmarks {

struct CaseStudy {
  search::Prior prior;
  std::optional<search::Point> own;  ///< the workload's own layout
  double card_bytes = 0;             ///< memory of one accelerator, of which the limit leaves a margin
};

/// Reads data/examples/mixtral_8x22b_mi355x.yaml from `folder`, the repository's.
CaseStudy case_study(const std::string& folder);

}  // namespace sextant::benchmarks
