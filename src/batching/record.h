// A rank's ticks as text, and the same ticks again from that text.
//
// A record has everything that decides: settings, events with their times, the tables of all ranks, outcomes;
// and what was decided: verdicts and a number for each plan. A scheduler that is fed the former must come to
// the latter; that is what "decides alike" means for an engine and a simulator.
//
// Lines of words, whole numbers separated by spaces; lists have their size first:
//   sextant batching record 1
//   settings RANK ...
//   accept NOW_US / request ... / abort ID / stop ID / shutdown
//   table RANKS ... / verdict PREFILL REASON SHUTDOWN
//   plans RANKS ... / plan TICK KIND SEGMENTS TOKENS HASH
//   outcome ID TOKEN ENDED / commit DURATION_US
// Salts are secrets of tenants; a record has a number in place of each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "batching/agreement.h"
#include "batching/scheduler.h"

namespace sextant::batching {

class Recorder {
 public:
  /// `write` takes whole lines.
  explicit Recorder(std::function<void(std::string_view)> write) : write_(std::move(write)) {}

  void begin(const Settings& settings, std::size_t rank);
  void accept(std::span<const Event> events, std::int64_t now_us);
  void verdict(std::span<const RankReport> table, const Verdict& verdict);
  void plan(std::span<const PlanReport> table, const BatchPlan& plan);
  void commit(const StepResult& result);

 private:
  std::function<void(std::string_view)> write_;
  std::map<std::string, std::int64_t> salts_;
};

struct Replay {
  std::int64_t ticks = 0;           ///< that were decided again
  std::int64_t different_line = 0;  ///< the first line that says something else than was decided; 0: none
  std::string difference = {};      ///< what was decided
  std::uint64_t hash = 0;           ///< over all plans
};

/// Decides everything again. Throws base::UserError naming the line (of `name`) that is none of a record; a
/// last tick that was not written to its end is left out.
Replay replay(const std::string& name, std::string_view text);

}  // namespace sextant::batching
