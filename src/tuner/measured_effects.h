// What turning one knob did, as measured: pairs of trials that differ in one axis.
#pragma once

#include "search/trial.h"
#include "tuner/json.h"
#include "tuner/measured_setup.h"

namespace sextant::tuner {

/// One row for each axis and pair of its values that two measured points have, apart from which they are
/// equal: `axis`, `from`, `to`, `pairs` (how many), `measured` and `projected` change (geometric means).
Json measured_effects_json(const MeasuredSetup& setup, const search::History& history);

}  // namespace sextant::tuner
