// Which planner a measured search runs by.
#pragma once

#include <memory>
#include <string>

#include "search/planner.h"
#include "search/prior.h"
#include "tuner/measured_setup.h"

namespace sextant::tuner {

/// "auto" is the workload's own layout, the sweep with a share of the budget, and then the surrogate;
/// "surrogate" leaves the sweep out, "sweep" the surrogate, "exhaustive" runs the candidates from the fastest
/// projection down. The setup must outlive the planner. Throws base::UserError for another name.
std::unique_ptr<search::Planner> measured_planner(const MeasuredSetup& setup);

}  // namespace sextant::tuner
