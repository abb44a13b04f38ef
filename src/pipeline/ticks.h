// Durations in integer ticks. A tick is a power of two of seconds, so whole numbers of seconds stay exact; it
// is chosen so that all steps and sends of a run laid end to end take about 2^61 ticks: no sum overflows, and
// each duration is off by at most half a tick. Internal to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/replay.h"
#include "pipeline/schedule.h"

namespace sextant::pipeline {

using Ticks = std::int64_t;

/// The cost tables of one run.
struct TickTable {
  std::vector<Ticks> step;  ///< index `step_index`
  std::vector<Ticks> send;  ///< index `send_index`: how long the link is occupied; one more entry, 0
  std::vector<Ticks> hold;  ///< likewise: until the message has arrived, latency included; one more entry, 0
  Ticks latency = 0;
  double seconds_per_tick = 1.0;

  /// Requires P·V durations of each kind, P·V sends or none, all finite and not negative.
  void assign(const Shape& shape, const Durations& durations);

  double seconds(Ticks ticks) const { return static_cast<double>(ticks) * seconds_per_tick; }
};

inline int step_index(const Shape& shape, int stage, const Step& step) {
  return (stage * shape.chunks + step.chunk) * 4 + static_cast<int>(step.kind);
}

inline int send_index(const Shape& shape, int stage, const Step& step) {
  return (stage * shape.chunks + step.chunk) * 2 + (step.kind == Kind::kForward ? 0 : 1);
}

/// The entry of `send` and `hold` for a step that sends nothing.
inline int no_send_index(const Shape& shape) { return shape.stages * shape.chunks * 2; }

}  // namespace sextant::pipeline
