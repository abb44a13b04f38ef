// A schedule prepared for replay: all steps of all stages in one sequence in which inputs precede their
// users, with every look-up already done. Internal to the room.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/schedule.h"

namespace sextant::pipeline {

/// One step. Arrival times of messages lie in an array that begins with a constant 0 and then holds one
/// record per micro-batch; `input` and `output` are places in it for the micro-batch as prepared. A period
/// that runs for the k-th time adds k records to both.
struct Instruction {
  std::int32_t stage = 0;
  std::int32_t step = 0;         ///< into TickTable::step
  std::int32_t input = 0;        ///< place of the awaited arrival; 0, the constant, when nothing is awaited
  std::int32_t input_moves = 0;  ///< -1 (all bits) when `input` moves on with the period, else 0
  std::int32_t output = 0;       ///< where the arrival of the output is written
  std::int32_t send = 0;         ///< into TickTable::send and hold
  std::int32_t link = 0;         ///< the link it is sent on; the last one, a dummy, when nothing is sent
};

struct Program {
  Shape shape;                  ///< as prepared: M less whole periods
  int period_microbatches = 0;  ///< 0: nothing repeats, all steps are in `before`
  int record_size = 0;          ///< places per micro-batch in the array of arrivals

  /// `before`, then `period` once or more often, then `after`.
  std::vector<Instruction> before;
  std::vector<Instruction> period;
  std::vector<Instruction> after;

  /// What the steps after a period can see of those before it: the links it uses and the arrivals still
  /// awaited (places before the first period; they move on with it). The stages' own clocks come on top.
  std::vector<std::int32_t> visible_links;
  std::vector<std::int32_t> visible_arrivals;

  /// Per stage: the place its first step waits for, the `hold` entries of its last step's send and of all,
  /// and the peaks.
  std::vector<std::int32_t> first_input;
  std::vector<std::int32_t> last_send;
  std::vector<std::vector<std::int32_t>> sends;  ///< `hold` entries of what the stage sends for a micro-batch
  std::vector<int> peak_live_chunks;
  std::vector<int> peak_pending_weight_gradients;

  std::size_t size() const { return before.size() + period.size() + after.size(); }
};

/// Prepares `orders` (one list per stage). `longer` is the order with one more period, or empty when nothing
/// is known to repeat; a middle that repeats is used only after `longer` has confirmed it.
Program prepare(Algorithm algorithm, const Shape& shape, std::span<const std::vector<Step>> orders,
                std::span<const std::vector<Step>> longer, int period_microbatches);

/// Prepares the algorithm's own order for `without_repeats(shape)`.
Program prepare(Algorithm algorithm, const Shape& shape);

}  // namespace sextant::pipeline
