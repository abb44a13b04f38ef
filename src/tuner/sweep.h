// What turning one knob at a time from the workload's own layout does: by projection alone, and as the first
// trials of a longer search. The table itself is search/sweep.h.
#pragma once

#include <memory>

#include "search/planner.h"
#include "tuner/json.h"
#include "tuner/measured_setup.h"

namespace sextant::tuner {

/// Where a sweep starts: the workload's own layout, or the first point of the space where it is none of its
/// points.
search::Point sweep_start(const MeasuredSetup& setup);

/// A sweep that stops when the search has run `most_trials`. It tries one value of every axis before the
/// other values: a whole sweep would spend its few trials on one axis. The setup must outlive the planner.
std::unique_ptr<search::Planner> short_sweep(const MeasuredSetup& setup, std::size_t most_trials);

/// The document of `tune --planner sweep` without trials (docs/reference/json.md).
Json projected_sweep(const TuneFlags& flags);

}  // namespace sextant::tuner
