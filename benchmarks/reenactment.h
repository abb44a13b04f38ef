// The case study with trials: 30 of them on a virtual cluster of MI355X that gives the published figures.
#pragma once

#include <string>

#include "case_study.h"

namespace sextant::benchmarks {

/// A page of text: what the search found, how far that is from the optimum, and what knowing memory saved.
std::string reenactment(const CaseStudy& study);

}  // namespace sextant::benchmarks
