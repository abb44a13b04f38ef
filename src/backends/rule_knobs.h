// Which knobs a rule depends on: what lets a tree search judge a rule before every knob is fixed.
#pragma once

#include <cstdint>
#include <string_view>

namespace sextant::backends {

/// Knobs of a layout as bits. A bit may stand for several fields that are only ever set together.
enum KnobBit : std::uint32_t {
  kKnobTp = 1U << 0,
  kKnobPp = 1U << 1,
  kKnobVpp = 1U << 2,
  kKnobCp = 1U << 3,
  kKnobEp = 1U << 4,
  kKnobEtp = 1U << 5,
  kKnobMicroBatch = 1U << 6,
  kKnobSchedule = 1U << 7,
  kKnobGroup = 1U << 8,
  kKnobSplit = 1U << 9,  ///< first and last layers, layout string
  kKnobSequenceParallel = 1U << 10,
  kKnobRecompute = 1U << 11,
  kKnobDispatch = 1U << 12,
  kKnobSyncFree = 1U << 13,
  kKnobSharding = 1U << 14,  ///< with the optimizer's own switches
  kKnobLoss = 1U << 15,
  kKnobOverlapGradientReduce = 1U << 16,
  kKnobOverlapParameterGather = 1U << 17,
  kKnobOverlapTensorParallel = 1U << 18,
  kKnobOverlapPointToPoint = 1U << 19,
  kKnobOverlapMoe = 1U << 20,
  kKnobPrecision = 1U << 21,
  kKnobOther = 1U << 22,  ///< everything else: batch, sequence, offload, graphs
  kAllKnobs = (1U << 23) - 1,
};

/// The bit of a short name ("tp", "first_layers", "overlap_p2p"); kKnobOther for a knob without one of its
/// own.
std::uint32_t knob_bit(std::string_view short_name);

/// The knobs that the verdict of `rule` depends on; kAllKnobs for a rule that is not listed, so that
/// forgetting one costs time, never an answer. A test flips all other knobs at random and finds the verdict
/// unchanged.
std::uint32_t knobs_read(std::string_view rule);

/// The knobs that a normalised rule changes; 0 for others.
std::uint32_t knobs_changed(std::string_view rule);

}  // namespace sextant::backends
