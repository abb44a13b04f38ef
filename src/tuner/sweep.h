// One knob at a time from the workload's own layout: which knobs matter, and what they do together.
//
// The table costs nothing, since all layouts are projected before (measured_setup.h). The planner runs its
// rows: first the best value of each axis, axes with the largest projected effect first, then the other
// values, then pairs of what won. Where the workload's own layout is illegal or does not fit, all starts from
// the nearest layout that is legal and does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "search/planner.h"
#include "tuner/json.h"
#include "tuner/measured_setup.h"

namespace sextant::tuner {

/// The start with one axis at another value.
struct SweepRow {
  std::size_t axis = 0;
  std::uint16_t value = 0;
  search::Point point{};
  std::optional<std::size_t> candidate{};  ///< index into prior.legal; empty: rejected
};

struct SweepTable {
  std::size_t start = 0;       ///< index into prior.legal
  bool own = true;             ///< the start is the workload's own layout
  std::vector<SweepRow> rows;  ///< axes by falling effect, values by falling projection, rejected ones last
};

/// Empty when no candidate exists at all.
std::optional<SweepTable> sweep_table(const MeasuredSetup& setup);

/// Runs the start and then the table, at most `most_trials` in all. The setup must outlive the planner.
std::unique_ptr<search::Planner> sweep_planner(const MeasuredSetup& setup, std::size_t most_trials);

/// The document of `tune --planner sweep` without trials (docs/reference/json.md).
Json projected_sweep(const TuneFlags& flags);

}  // namespace sextant::tuner
