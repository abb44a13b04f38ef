// The two-batch splitter: where a step is cut into two halves, so that one half's collectives hide behind the
// other's arithmetic.
//
// A cut inside a sequence is legal: its later half attends to keys that the earlier half writes, and halves
// pass each layer in order. What a step computes does not show where it was cut.
#pragma once

#include <cstdint>
#include <span>

#include "batching/plan.h"

namespace sextant::batching {

enum class OverlapMode { kOff, kPrefill, kAll };

enum class SplitPolicy {
  kTokenMidpoint,    ///< half of the tokens, inside a sequence where need be (ROCm/ATOM's default)
  kRequestBoundary,  ///< the boundary nearest to half; the later one of two equally near (ROCm/ATOM)
  kBalanced,         ///< that boundary, unless it leaves a half too small: then half of the tokens (SGLang)
};

struct OverlapSettings {
  OverlapMode mode = OverlapMode::kOff;
  SplitPolicy policy = SplitPolicy::kTokenMidpoint;
  std::int64_t min_prefill_tokens = 8192;  ///< of a rank, to be worth it (ROCm/ATOM's default)
  std::int64_t min_decode_sequences = 2;
  std::int64_t least_half_permille = 480;  ///< of balanced (SGLang's tbo_token_distribution_threshold)
};

struct Cut {
  std::int64_t segment = 0;  ///< the first one that the second half has a part of
  std::int64_t tokens = 0;   ///< in the first half; 0: there are no two halves

  friend bool operator==(const Cut&, const Cut&) = default;
};

/// The cut of a step. Decoding steps are cut at half of their sequences, rounded down, whatever the policy.
Cut find_split(std::span<const Segment> segments, StepKind kind, const OverlapSettings& settings);

/// Cuts the plan. REQUIRES: 0 < cut.tokens < tokens_of(plan).
void apply_split(BatchPlan& plan, const Cut& cut);

}  // namespace sextant::batching
