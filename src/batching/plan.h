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
  std::int64_t window_tokens = 0;  ///< a position sees itself and window_tokens - 1 before it, in all layers
  std::int64_t state_slots = 0;    ///< states of fixed size, for families that keep some
  std::int64_t checkpoint_interval_tokens = 0;  ///< states are kept for later prompts every so many positions
  std::int64_t successor_tokens = 0;  ///< least positions that are computed after a state is taken up again

  friend bool operator==(const CacheSpec&, const CacheSpec&) = default;
};

/// Neighbouring positions of one sequence. A sequence that is cut by an overlap split appears as two segments
/// of one step, the earlier positions first.
struct Segment {
  SequenceId id = 0;
  std::int64_t first_position = 0;
  std::int64_t tokens = 0;
  bool samples = false;  ///< the last position's output is drawn from

  friend bool operator==(const Segment&, const Segment&) = default;
};

enum class StepKind { kIdle, kPrefill, kDecode, kMixed };

/// What happens to states of fixed size (CacheSpec::state_slots) around a step. Slots that sequences use and
/// slots that keep checkpoints are numbered alike.
struct CacheOperation {
  enum class Kind { kClear, kCopy };
  Kind kind = Kind::kClear;
  std::int32_t to = 0;
  std::int32_t from = 0;  ///< of a copy

  friend bool operator==(const CacheOperation&, const CacheOperation&) = default;
};

/// Where a step is cut into two halves that overlap each other. Without a cut there is one half.
struct Split {
  std::int64_t segments = 0;  ///< of the first half; 0: the step is not cut

  friend bool operator==(const Split&, const Split&) = default;
};

struct BatchPlan {
  std::int64_t tick = 0;
  StepKind kind = StepKind::kIdle;
  std::vector<Segment> segments = {};
  std::vector<TokenId> token_ids = {};  ///< of all segments, in order; empty in the simulator
  /// One for each segment: blocks of the whole sequence. Entries of blocks that lie wholly before the window
  /// are -1.
  std::vector<std::vector<std::int32_t>> block_tables = {};
  std::vector<std::int32_t> state_slots = {};  ///< one for each segment; empty without states
  std::vector<CacheOperation> before = {};     ///< in order, before the first layer
  std::vector<CacheOperation> after = {};      ///< in order, after the last layer
  Split split = {};
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

/// A number for everything in a plan: equal plans have equal numbers on every machine.
std::uint64_t hash_of(const BatchPlan& plan);

}  // namespace sextant::batching
