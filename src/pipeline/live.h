// What a stage keeps alive at its peak, from the order of its steps alone (no times).
//
// A chunk pass (one micro-batch through one chunk) is alive from the start of its F to the end of its last
// backward part. A stage does one step at a time, so the count changes only from step to step and the
// durations do not matter. Closed forms where the schedule has one:
//   1F1B          min(M, P-r)
//   interleaved   min(2(P-1-r) + (V-1)·N + 1, M·V) chunks (Megatron-LM's warm-up plus the one of the steady
//   state) GPipe         M
// for stage r. Pure functions; those that fill a span allocate nothing.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "pipeline/schedule.h"

namespace sextant::pipeline {

/// What an order keeps alive, counted step by step.
struct LivePeak {
  int chunk_passes = 0;              ///< most chunk passes alive at one moment
  int pending_weight_gradients = 0;  ///< most chunk passes at one moment whose B has run and whose W has not
  std::vector<int> per_chunk;  ///< micro-batches of each chunk alive when `chunk_passes` is first reached
};

/// The peak along any order of one stage.
LivePeak live_peak(std::span<const Step> order, int chunks);

/// The largest sum of `bytes_per_chunk` over what is alive, over all moments of any order.
double peak_live_bytes(std::span<const Step> order, std::span<const double> bytes_per_chunk);

/// The peak of every stage. With a split backward this costs one generation of the order for all stages,
/// where the functions below cost one for each.
std::vector<LivePeak> live_peaks(Algorithm algorithm, const Shape& shape);

/// Chunk passes alive on `stage` at its peak.
int peak_live_chunks(Algorithm algorithm, const Shape& shape, int stage);

/// Chunk passes of `stage` whose B has run and whose W has not, at the peak of that count; 0 where backward
/// is one step.
int peak_pending_weight_gradients(Algorithm algorithm, const Shape& shape, int stage);

/// How many micro-batches of each chunk are alive when `stage` first reaches its peak. Sums up to
/// `peak_live_chunks`. For the last stage of an interleaved schedule that is N of each chunk but the last and
/// one of the last, the moment of the memory peak in Megatron-LM (cross entropy of the micro-batch that
/// starts the steady state).
std::vector<int> live_per_chunk(Algorithm algorithm, const Shape& shape, int stage);

/// The same into `live`, which has one place per chunk.
void live_per_chunk(Algorithm algorithm, const Shape& shape, int stage, std::span<int> live);

/// The largest sum of `bytes_per_chunk` over the chunk passes alive on `stage`, over all moments. Differs
/// from live_per_chunk times bytes where chunks differ: the same count may later hold more of a heavy chunk.
double peak_live_bytes(Algorithm algorithm, const Shape& shape, int stage,
                       std::span<const double> bytes_per_chunk);

}  // namespace sextant::pipeline
