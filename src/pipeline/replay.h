// Replaying a schedule: when does every step run, given how long steps and sends take?
//
// Each stage works through its list of steps (schedule.h) in order; a step starts as soon as the stage is
// free and its input has arrived. A forward waits for the forward of the previous virtual stage, a backward
// (B or BW) for that of the next; the rest is ordered by the list itself. What crosses to another stage is
// sent; chunks that are neighbours on the same stage (the turn of a V) hand over without a send.
//
// Times are kept in integer ticks, chosen so that the longest imaginable run has about 2^61 of them: no
// rounding accumulates. A replay that skips repeating periods agrees with one that walks through them to
// 1e-13, and bit for bit where the times repeat exactly.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "pipeline/schedule.h"

namespace sextant::pipeline {

/// How long things take, in seconds, not negative. The vectors hold one value per stage and chunk,
/// stage-major (index stage·V + chunk); a chunk takes what is said here, so with V chunks that is usually 1/V
/// of the stage.
struct Durations {
  std::vector<double> forward_s;          ///< F
  std::vector<double> backward_input_s;   ///< B
  std::vector<double> backward_weight_s;  ///< W; a step BW takes B + W

  /// How long the output of a chunk's F (of its B or BW) occupies the link to the stage that needs it. A link
  /// is one direction between two neighbouring stages and carries one message at a time. Empty: no time.
  /// The last virtual stage's forward entry and the first one's backward entry are not used.
  std::vector<double> forward_send_s = {};
  std::vector<double> backward_send_s = {};

  /// Added to each send; messages may follow each other within it.
  double send_latency_s = 0.0;

  /// true: a stage computes on while it sends. false: it waits until the message has arrived.
  bool overlap = true;
};

/// P·V equal chunks: `forward_s` … are the times of a whole stage, so a chunk takes 1/V of each.
Durations uniform_durations(const Shape& shape, double forward_s, double backward_input_s,
                            double backward_weight_s, double send_s = 0.0);

/// What a replay says. Vectors hold one value per stage.
struct Replay {
  double makespan_s = 0.0;            ///< last end - first start over all stages
  double span_s = 0.0;                ///< max over stages of (last end - first start on that stage)
  double ideal_s = 0.0;               ///< max over stages of busy_s: what no schedule can beat
  std::vector<double> busy_s;         ///< time in steps
  std::vector<double> blocked_s;      ///< time in which a send kept the stage from computing (no overlap)
  std::vector<double> first_start_s;  ///< start of the first step
  std::vector<double> last_end_s;     ///< end of the last step

  /// Chunk passes alive at the peak: from the start of F to the end of BW, or of the later of B and W.
  std::vector<int> peak_live_chunks;
  /// The same in micro-batches of a whole stage: peak_live_chunks / V.
  std::vector<double> peak_live_microbatches;
  /// Chunk passes whose B has run and whose W has not, at the peak of that count.
  std::vector<int> peak_pending_weight_gradients;
};

/// One step with its times, for charts and for check.h.
struct Operation {
  int stage = 0;
  int chunk = 0;
  int microbatch = 0;
  Kind kind = Kind::kForward;
  double start_s = 0.0;
  double end_s = 0.0;  ///< the end of the step itself; a send that follows is not part of it
};

/// Replays many schedules, fast: a few microseconds each once it has seen the shape (or one that differs only
/// by whole groups of micro-batches). It prepares a shape once and keeps it, and reuses all memory, so a call
/// on a known shape allocates nothing. One per thread; copies nothing, locks nothing.
class Replayer {
 public:
  Replayer();
  ~Replayer();
  Replayer(Replayer&&) noexcept;
  Replayer& operator=(Replayer&&) noexcept;

  /// The replay of a schedulable shape. The result lives in this object until the next call.
  const Replay& run(Algorithm algorithm, const Shape& shape, const Durations& durations);

  /// The same for an order of one's own, one list per stage; of `algorithm` only the way the chunks are laid
  /// out counts. Prepares the order anew each time.
  const Replay& run(Algorithm algorithm, const Shape& shape, const Durations& durations,
                    std::span<const std::vector<Step>> orders);

  /// Whether to skip repeating periods (the default) or to walk through each of them. The result is the same.
  void set_skip_periods(bool skip);

  /// Steps the last run walked, out of 2·P·V·M (or 3·P·V·M with a split backward).
  long long walked_steps() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One replay without a Replayer at hand; prepares the shape anew each time.
Replay replay(Algorithm algorithm, const Shape& shape, const Durations& durations);

/// Every step with its times, ordered by stage, then by time: a plain walk that skips nothing.
std::vector<Operation> operations(Algorithm algorithm, const Shape& shape, const Durations& durations);

/// The same for an order of one's own.
std::vector<Operation> operations(Algorithm algorithm, const Shape& shape, const Durations& durations,
                                  std::span<const std::vector<Step>> orders);

}  // namespace sextant::pipeline
