// What a serving rank does in one step, in whole numbers only: an executor carries it out, a simulator prices
// it.
#pragma once

#include <cstdint>
#include <vector>

namespace sextant::batching {

using SequenceId = std::int64_t;
using TokenId = std::int32_t;

/// What a model keeps for each sequence between steps. Zeros: none.
struct CacheSpec {
  std::int64_t block_tokens = 16;  ///< positions of a block
  std::int64_t blocks = 0;         ///< that the rank has
  std::int64_t window_tokens = 0;  ///< positions further back than this in all layers are never read again
  std::int64_t state_slots = 0;    ///< states of fixed size, for families that keep some
  std::int64_t checkpoint_interval_tokens = 0;
  std::int64_t successor_tokens = 0;
};

/// Neighbouring positions of one sequence. A sequence that is cut by an overlap split appears as two segments
/// of one step, the earlier positions first.
struct Segment {
  SequenceId id = 0;
  std::int64_t first_position = 0;
  std::int64_t tokens = 0;
  bool samples = false;  ///< the last position's output is drawn from
};

enum class StepKind { kIdle, kPrefill, kDecode, kMixed };

struct BatchPlan {
  std::int64_t tick = 0;
  StepKind kind = StepKind::kIdle;
  std::vector<Segment> segments = {};
  std::vector<TokenId> token_ids = {};  ///< of all segments, in order; empty in the simulator
  std::vector<std::vector<std::int32_t>> block_tables =
      {};  ///< one for each segment: blocks of the whole sequence
};

enum class Ended { kNo, kStopText, kError };

struct Outcome {
  SequenceId id = 0;
  TokenId token = 0;
  Ended ended = Ended::kNo;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

struct StepResult {
  std::int64_t tick = 0;
  std::vector<Outcome> outcomes = {};  ///< one for each segment that samples, in order
  std::int64_t duration_us = 0;
};

/// Positions of all segments.
std::int64_t tokens_of(const BatchPlan& plan);

}  // namespace sextant::batching
