#include "batching/rank.h"

#include <utility>

namespace sextant::batching {

void Rank::record(std::function<void(std::string_view)> write) {
  recorder_.emplace(std::move(write));
  recorder_->begin(scheduler_.settings(), index_);
}

std::vector<Progress> Rank::accept(std::span<const Event> events, std::int64_t now_us) {
  if (recorder_) recorder_->accept(events, now_us);
  return scheduler_.accept(events, now_us);
}

const Verdict& Rank::plan(std::span<const RankReport> table) {
  verdict_ = agree(scheduler_.settings().agreement, table, delayer_);
  scheduler_.plan(verdict_);
  if (recorder_) recorder_->verdict(table, verdict_);
  ++counters_.verdicts[static_cast<std::size_t>(verdict_.reason)];
  counters_.held_ticks += verdict_.prefill ? 0 : 1;
  return verdict_;
}

const BatchPlan& Rank::settle(std::span<const PlanReport> table) {
  settlement_ = batching::settle(scheduler_.settings().agreement, table);
  const BatchPlan& plan = scheduler_.apply(settlement_);
  if (recorder_) recorder_->plan(table, plan);
  ++counters_.vetoes[static_cast<std::size_t>(settlement_.veto)];
  counters_.padding_rows += settlement_.padding_rows;
  return plan;
}

std::vector<Progress> Rank::commit(const StepResult& result) {
  if (recorder_) recorder_->commit(result);
  return scheduler_.commit(result);
}

const BatchPlan& plan_alone(Rank& rank) {
  const RankReport report = rank.report();
  rank.plan({&report, 1});
  const PlanReport planned = rank.plan_report();
  return rank.settle({&planned, 1});
}

}  // namespace sextant::batching
