// Recomputation that a publisher does not print: the cheapest that fits.
#pragma once

#include <string>

#include "training/job.h"

namespace sextant::calibration {

/// Sets `job.layout.recompute` to the first of: none, the core attention (where its scores are kept), the
/// fewest layers a stage recomputed in full. All layers when nothing fits. Returns what was chosen, in words.
std::string choose_cheapest_recompute(training::Job& job);

}  // namespace sextant::calibration
