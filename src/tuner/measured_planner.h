// Which planner a measured search runs by.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "search/planner.h"
#include "search/prior.h"
#include "search/proposer.h"
#include "tuner/measured_setup.h"

namespace sextant::tuner {

/// "auto" is the workload's own layout, the sweep with a share of the budget, and then the surrogate;
/// "surrogate" leaves the sweep out, "sweep" the surrogate, "exhaustive" runs the candidates from the fastest
/// projection down. Where there is a proposer, it works beside the surrogate (search/guided.h), and `note` is
/// told when it is not asked any more. Setup and proposer must outlive the planner. Throws base::UserError
/// for another name.
std::unique_ptr<search::Planner> measured_planner(const MeasuredSetup& setup,
                                                  search::Proposer* proposer = nullptr,
                                                  const std::function<void(const std::string&)>& note = {});

}  // namespace sextant::tuner
