// What a measured search cost, and what rules and the memory filter kept it from spending.
#pragma once

#include <span>

#include "cluster/cluster.h"
#include "tuner/json.h"
#include "tuner/measured_setup.h"
#include "tuner/recorded_run.h"

namespace sextant::tuner {

/// `{trials_s, gpu_hours, money, by_state:{state: {trials, gpu_hours}}}`; money is null without a price.
Json price_json(std::span<const RecordedTrial> trials, const cluster::Cluster& cluster);

/// `{trial_s, from, memory:{points, share, gpu_hours, trials_in_budget, gpu_hours_in_budget}, rules:{…}}`.
/// A rejected point would have cost one trial: `trial_s` is the mean time of this run's trials that failed,
/// or of all where none did (`from` says which); null before the first one ended. `gpu_hours` is that for all
/// rejected points, what finding them out one by one would have cost. `trials_in_budget` is the share of so
/// many trials as this run made that would have fallen on such points, had they been drawn blindly from what
/// the filter sees: all combinations for the rules, legal layouts for memory.
Json saved_json(const MeasuredSetup& setup, std::span<const RecordedTrial> trials);

}  // namespace sextant::tuner
