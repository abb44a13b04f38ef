// An independent reader of a replay: derives every claim again from the list of operations.
//
// It shares with the replay only what a schedule *is* (the shape, where chunks live), none of its code, and
// computes in plain seconds. Tests hold every algorithm against it; a report may do so too.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "pipeline/replay.h"
#include "pipeline/schedule.h"

namespace sextant::pipeline {

/// All faults found, one sentence each; empty when the claims hold:
///   - every chunk pass has exactly one F and either one BW or one B and one W, on its stage, of its
///   duration;
///   - on a stage nothing overlaps, F precedes its backward, B precedes its W;
///   - F follows F of the previous virtual stage and B (or BW) that of the next, after the send, and messages
///     of one link follow each other; without overlap the stage does nothing meanwhile;
///   - no step starts later than the stage and its input allow, in the order given;
///   - makespan, span, ideal, busy and blocked times, first starts, last ends, live and pending peaks are as
///     claimed, times to 1e-11 of the makespan.
std::vector<std::string> faults(Algorithm algorithm, const Shape& shape, const Durations& durations,
                                const Replay& claims, std::span<const Operation> operations);

}  // namespace sextant::pipeline
