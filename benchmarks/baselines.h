// What the surrogate is compared with: searches that learn from measured objectives alone, and one that
// trusts the projection alone.
//
// All of them begin with the projected best and draw only from points that are projected to fit, so that what
// is compared is how they learn. None proposes a point twice.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "search/planner.h"
#include "search/prior.h"

namespace sextant::benchmarks {

/// Points drawn evenly.
std::unique_ptr<search::Planner> random_search(const search::Prior& prior, std::uint64_t seed);

/// From the fastest projection down.
std::unique_ptr<search::Planner> projected_order(const search::Prior& prior);

/// A tree-structured Parzen estimator: Bergstra, Bardenet, Bengio and Kégl, Algorithms for Hyper-Parameter
/// Optimization, 2011, for axes with finite values, with the settings that Optuna uses without being told
/// otherwise (10 trials at random, the best tenth is good, 24 draws a trial).
std::unique_ptr<search::Planner> parzen_estimator(const search::Prior& prior, std::uint64_t seed);

/// Simulated annealing: Kirkpatrick, Gelatt and Vecchi 1983, over points that differ on at most two axes; the
/// temperature falls from 10 % of the objective to 0.5 % over the budget.
std::unique_ptr<search::Planner> annealing(const search::Prior& prior, std::uint64_t seed);

/// The point with the best measurement; empty while nothing has run.
std::optional<search::Point> best_measured(const search::History& history);

}  // namespace sextant::benchmarks
