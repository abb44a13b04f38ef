// What running a candidate gives: one trial, how it ended, and what all trials of one point say together.
//
// A trial is one run of one point on whatever is expensive. It ends in exactly one state. Some states say
// something of the point (it ran, it ran out of memory, it broke), others only of the machine (a node died,
// the launcher refused): planners learn from the first kind and try again after the second.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "search/space.h"

namespace sextant::search {

enum class TrialState {
  kOk,             ///< ran to its end; objective holds
  kOutOfMemory,    ///< the point does not fit
  kFailed,         ///< ran and broke for another reason
  kTimedOut,       ///< gave no result within the time limit
  kNotANumber,     ///< ran, and its results are not numbers: fast, but wrong
  kNodeFailure,    ///< the machine's fault; says nothing of the point
  kLaunchFailure,  ///< never started; says nothing of the point
  kInterrupted,    ///< stopped from outside; says nothing of the point
  kBorderline,     ///< of a point, never of one trial: some trials ran and some did not
};

/// "ok", "out_of_memory", "failed", "timed_out", "not_a_number", "node_failure", "launch_failure",
/// "interrupted", "borderline".
std::string_view word(TrialState state);
/// The state with that word; empty for another word.
std::optional<TrialState> trial_state(std::string_view word);

/// False for node failure, launch failure and interruption.
bool speaks_of_point(TrialState state);

/// How one trial ended.
struct TrialResult {
  TrialState state = TrialState::kOk;
  double objective =
      0;  ///< kOk only: larger is better, finite and positive; in the unit of the prior's objective
  double peak_bytes = 0;   ///< measured peak memory of the fullest device; 0: not known
  double price_s = 0;      ///< time that the trial took from its budget
  double price_money = 0;  ///< 0: not known
  std::string message;     ///< one line for people: what went wrong, or empty
  bool operator==(const TrialResult&) const = default;
};

/// One finished trial. `repeat` counts the earlier trials of the same point, whatever their state.
struct Trial {
  Point point;
  std::size_t repeat = 0;
  TrialResult result;
  bool operator==(const Trial&) const = default;
};

/// Finished trials in the order in which they were run: all that a planner may learn from.
using History = std::vector<Trial>;

/// What all trials of one point say together.
struct Standing {
  TrialState state = TrialState::kOk;  ///< kBorderline when some ran and others did not; kInterrupted, node
                                       ///< or launch failure only when no trial speaks of the point
  std::size_t repeats = 0;             ///< trials of the point
  std::size_t measured = 0;            ///< of those, kOk
  double objective = 0;                ///< mean of the measured ones
  double deviation = 0;                ///< their standard deviation; 0 with fewer than two
  double peak_bytes = 0;               ///< the largest known peak; 0: not known
};

/// Standing of `point`; empty when it was never tried.
std::optional<Standing> standing(const History& history, const Point& point);

/// The place in `history` of the best single result, the earliest of equals; empty when nothing ran.
std::optional<std::size_t> best_trial(const History& history);

/// The repeat number of the next trial of `point`.
std::size_t next_repeat(const History& history, const Point& point);

}  // namespace sextant::search
