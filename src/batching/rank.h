// One rank through its ticks: scheduler, what ranks have agreed so far, and a record of it.
//
//   rank.accept(events, now_us);
//   table of rank.report() of all ranks        -> rank.plan(table)
//   table of rank.plan_report() of all ranks   -> rank.settle(table), the plan to be run
//   rank.commit(result)
//
// A rank without others makes both tables of its own report: plan_alone().
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "batching/record.h"
#include "batching/scheduler.h"

namespace sextant::batching {

/// Ticks by what the ranks agreed. Idle ticks of a rank without others are not counted.
struct AgreementCounters {
  std::array<std::int64_t, kReasons> verdicts = {};  ///< by Reason
  std::array<std::int64_t, kVetoes> vetoes = {};     ///< by Veto; kNone: overlapped
  std::int64_t held_ticks = 0;
  std::int64_t padding_rows = 0;
};

class Rank {
 public:
  /// `index`: of this rank's report in the tables.
  explicit Rank(const Settings& settings, std::size_t index = 0, HashFunction hash = chained_hash)
      : scheduler_(settings, hash), index_(index) {}

  /// Writes all that follows. To be called before the first tick.
  void record(std::function<void(std::string_view)> write);

  std::vector<Progress> accept(std::span<const Event> events, std::int64_t now_us);
  RankReport report() const { return scheduler_.report(); }
  const Verdict& plan(std::span<const RankReport> table);
  PlanReport plan_report() const { return scheduler_.plan_report(); }
  const BatchPlan& settle(std::span<const PlanReport> table);
  std::vector<Progress> commit(const StepResult& result);

  const Scheduler& scheduler() const { return scheduler_; }
  const DelayerState& delayer() const { return delayer_; }
  const Verdict& verdict() const { return verdict_; }
  const Settlement& settlement() const { return settlement_; }
  const AgreementCounters& counters() const { return counters_; }
  std::size_t index() const { return index_; }

 private:
  Scheduler scheduler_;
  std::size_t index_;
  DelayerState delayer_;
  Verdict verdict_;
  Settlement settlement_;
  AgreementCounters counters_;
  std::optional<Recorder> recorder_;
};

/// From accept() to the plan to be run, for a rank that has no others.
const BatchPlan& plan_alone(Rank& rank);

}  // namespace sextant::batching
