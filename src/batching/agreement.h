// How ranks stay in step. Each tick, every rank gathers one table of all ranks' reports before it plans and
// one after; what follows from a table is a pure function of it, so ranks cannot come to different ends.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batching/delayer.h"
#include "batching/plan.h"
#include "batching/splitter.h"

namespace sextant::batching {

struct AgreementSettings {
  DelayerSettings delayer = {};
  OverlapSettings overlap = {};
};

/// What a rank's plan asks of the others.
struct PlanReport {
  StepKind kind = StepKind::kIdle;
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;
  bool can_split = false;  ///< into two halves, neither of them empty
  bool meets_min = false;  ///< enough to be worth it
  std::int64_t half0 = 0;  ///< tokens of the halves; 0 when it cannot be split
  std::int64_t half1 = 0;

  friend bool operator==(const PlanReport&, const PlanReport&) = default;
};

enum class Veto {
  kNone,
  kOff,           ///< the policy overlaps no step of this kind
  kBelowMinimum,  ///< no rank has enough
  kPhasesDiffer,  ///< some ranks prefill and some do not
  kCannotSplit,   ///< a rank has no two halves
};
inline constexpr std::size_t kVetoes = 5;
const char* name_of(Veto veto);  ///< "overlapped" for kNone

/// What all ranks do in this step.
struct Settlement {
  bool uniform = false;             ///< no rank prefills: all send as many rows as the largest
  std::vector<std::int64_t> rows0;  ///< of each rank, in the first half or, without overlap, in all
  std::vector<std::int64_t> rows1;  ///< of each rank in the second half; empty without overlap
  std::int64_t padding_rows = 0;    ///< of all ranks
  bool overlap = false;
  Veto veto = Veto::kNone;
  std::int64_t vetoed_by = -1;  ///< the first rank that stands against it; -1: none in particular

  friend bool operator==(const Settlement&, const Settlement&) = default;
};

/// Before planning: may ranks prefill, and is it over?
Verdict agree(const AgreementSettings& settings, std::span<const RankReport> reports, DelayerState& state);

PlanReport report_of(const BatchPlan& plan, const OverlapSettings& settings);

/// After planning. Overlap needs one rank that meets the minimum, all that can be split, and one phase
/// (ROCm/ATOM, two-batch overlap, commit ffdf3bb5).
Settlement settle(const AgreementSettings& settings, std::span<const PlanReport> reports);

/// What one token sends through a layer of experts.
struct ExpertTraffic {
  std::int64_t layers = 0;  ///< that have routed experts
  std::int64_t hidden = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t gathered_value_bytes = 2;  ///< hidden rows are gathered in bfloat16
  std::int64_t reduced_value_bytes = 4;   ///< and come back in float32, or in 2 bytes
};

struct Collective {
  enum class Kind { kExchangeReports, kExchangePlans, kAllGather, kReduceScatter };
  Kind kind = Kind::kExchangeReports;
  std::int64_t layer = -1;
  std::int64_t half = 0;
  std::vector<std::int64_t> bytes = {};  ///< that each rank contributes (all-gather) or receives in the end

  friend bool operator==(const Collective&, const Collective&) = default;
};

/// Every collective of a tick, in the one order that all ranks keep: the two exchanges, then for each layer
/// of experts the gathers of both halves and their reduce-scatters. Ranks without rows take part in all.
std::vector<Collective> collectives(const Settlement& settlement, const ExpertTraffic& traffic);

}  // namespace sextant::batching
