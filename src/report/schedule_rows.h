// What the drawings of a schedule (terminal and SVG) have in common: the steps of each stage, how they look
// in cells of time that may be longer than a step, and how many chunk passes are alive when.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/replay.h"

namespace sextant::report {

using Operations = std::span<const pipeline::Operation>;

/// The operations of each stage. `operations` are ordered by stage, as a replay lists them.
std::vector<Operations> rows_of(Operations operations);

/// What a legend says of a kind. `splits`: some backwards of the schedule are two steps.
std::string_view meaning(pipeline::Kind kind, bool splits);

/// A unit in which times up to `longest_s` have few digits.
struct TimeUnit {
  double seconds = 1.0;
  std::string_view name = "s";
};
TimeUnit unit_of(double longest_s);

/// "25.5 s", "0.5 s", "383.333 ms": six digits, in the unit given.
std::string time_text(double time_s, const TimeUnit& unit);

/// The end of the last step; 0 without any.
double end_of(Operations operations);

/// Cells that show the same, one after the other.
struct CellRun {
  int first = 0;
  int count = 0;
  int operation = -1;  ///< index into the row; -1: the stage waits
};

/// `count` cells of `cell_s` each, from time 0. A cell shows what fills most of it: waiting, or the steps of
/// one kind and chunk taken together, of which the longest in the cell stands for all. Equal shares: what
/// comes first. Cost: linear in steps and cells.
std::vector<CellRun> cell_runs(Operations row, double cell_s, int count);

/// Share of a cell's time that goes to each kind, by Kind; `count` cells of `cell_s` each, from time 0.
using KindShares = std::array<double, 4>;
std::vector<KindShares> kind_shares(Operations row, double cell_s, int count);

/// The longest time of which all starts and ends are multiples, or 0 when it would be shorter than `least_s`.
double grid_s(Operations operations, double least_s);

/// From `start_s` on, `live` chunk passes are alive on a stage.
struct LiveChange {
  double start_s = 0.0;
  int live = 0;
};

/// How many chunk passes are alive on a stage, change by change, one entry a point in time. A pass is alive
/// from the start of its F to the end of its BW or W. Steps that take no time leave no entry.
std::vector<LiveChange> live_changes(Operations row);

}  // namespace sextant::report
