#include "batching/agreement.h"

#include <algorithm>
#include <utility>

namespace sextant::batching {
namespace {

bool prefills(const PlanReport& report) {
  return report.kind == StepKind::kPrefill || report.kind == StepKind::kMixed;
}

bool covers(OverlapMode mode, bool prefill) {
  return mode == OverlapMode::kAll || (mode == OverlapMode::kPrefill && prefill);
}

/// The first rank of which `stands_against` is true; -1: none.
template <typename Condition>
std::int64_t first_rank(std::span<const PlanReport> reports, Condition stands_against) {
  const auto it = std::ranges::find_if(reports, stands_against);
  return it == reports.end() ? -1 : it - reports.begin();
}

/// Whether this step overlaps, and who stands against it.
void decide_overlap(const OverlapSettings& settings, std::span<const PlanReport> reports,
                    Settlement& settlement) {
  const auto veto = [&](Veto reason, std::int64_t rank) {
    settlement.veto = reason;
    settlement.vetoed_by = rank;
  };
  const bool some_prefill = std::ranges::any_of(reports, prefills);
  if (!covers(settings.mode, some_prefill)) return veto(Veto::kOff, -1);
  if (std::ranges::none_of(reports, &PlanReport::meets_min)) return veto(Veto::kBelowMinimum, -1);
  if (some_prefill && !std::ranges::all_of(reports, prefills)) {
    return veto(Veto::kPhasesDiffer, first_rank(reports, [](const auto& each) { return !prefills(each); }));
  }
  if (!std::ranges::all_of(reports, &PlanReport::can_split)) {
    return veto(Veto::kCannotSplit, first_rank(reports, [](const auto& each) { return !each.can_split; }));
  }
  settlement.overlap = true;
}

void level(std::vector<std::int64_t>& rows, std::int64_t& padding) {
  const std::int64_t most = std::ranges::max(rows);
  for (std::int64_t& each : rows) padding += most - std::exchange(each, most);
}

}  // namespace

const char* name_of(Veto veto) {
  switch (veto) {
    case Veto::kNone:
      return "overlapped";
    case Veto::kOff:
      return "off";
    case Veto::kBelowMinimum:
      return "below_minimum";
    case Veto::kPhasesDiffer:
      return "phases_differ";
    case Veto::kCannotSplit:
      return "cannot_split";
  }
  return "";
}

Verdict agree(const AgreementSettings& settings, std::span<const RankReport> reports, DelayerState& state) {
  Verdict verdict = delay(settings.delayer, reports, state);
  verdict.shutdown = std::ranges::all_of(
      reports, [](const RankReport& report) { return report.shutdown && !report.has_work; });
  return verdict;
}

PlanReport report_of(const BatchPlan& plan, const OverlapSettings& settings) {
  PlanReport report{.kind = plan.kind,
                    .tokens = tokens_of(plan),
                    .sequences = static_cast<std::int64_t>(plan.segments.size())};
  const bool prefill = prefills(report);
  if (report.kind == StepKind::kIdle || !covers(settings.mode, prefill)) return report;
  const Cut cut = find_split(plan.segments, plan.kind, settings);
  report.can_split = cut.tokens > 0 && cut.tokens < report.tokens;
  report.meets_min = prefill ? report.tokens >= settings.min_prefill_tokens
                             : report.sequences >= settings.min_decode_sequences;
  if (report.can_split) {
    report.half0 = cut.tokens;
    report.half1 = report.tokens - cut.tokens;
  }
  return report;
}

Settlement settle(const AgreementSettings& settings, std::span<const PlanReport> reports) {
  Settlement settlement;
  settlement.uniform = std::ranges::none_of(reports, prefills);
  decide_overlap(settings.overlap, reports, settlement);
  for (const PlanReport& report : reports) {
    settlement.rows0.push_back(settlement.overlap ? report.half0 : report.tokens);
    if (settlement.overlap) settlement.rows1.push_back(report.half1);
  }
  if (settlement.uniform) {
    level(settlement.rows0, settlement.padding_rows);
    if (settlement.overlap) level(settlement.rows1, settlement.padding_rows);
  }
  return settlement;
}

std::vector<Collective> collectives(const Settlement& settlement, const ExpertTraffic& traffic) {
  using Kind = Collective::Kind;
  std::vector<Collective> all = {{.kind = Kind::kExchangeReports}, {.kind = Kind::kExchangePlans}};
  if (std::ranges::max(settlement.rows0) == 0 && !settlement.overlap) return all;
  // A gathered row: its hidden values, and for each chosen expert its number (2 bytes) and weight (4).
  const std::int64_t gathered =
      traffic.hidden * traffic.gathered_value_bytes + traffic.experts_per_token * (2 + 4);
  const std::int64_t reduced = traffic.hidden * traffic.reduced_value_bytes;
  const auto add = [&](Kind kind, std::int64_t layer, std::int64_t half, std::int64_t row_bytes) {
    Collective each{.kind = kind, .layer = layer, .half = half};
    for (const std::int64_t rows : half == 0 ? settlement.rows0 : settlement.rows1) {
      each.bytes.push_back(rows * row_bytes);
    }
    all.push_back(std::move(each));
  };
  const std::int64_t halves = settlement.overlap ? 2 : 1;
  for (std::int64_t layer = 0; layer < traffic.layers; ++layer) {
    for (std::int64_t half = 0; half < halves; ++half) add(Kind::kAllGather, layer, half, gathered);
    for (std::int64_t half = 0; half < halves; ++half) add(Kind::kReduceScatter, layer, half, reduced);
  }
  return all;
}

}  // namespace sextant::batching
