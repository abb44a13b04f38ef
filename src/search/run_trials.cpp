#include "search/run_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"

namespace sextant::search {
namespace {

/// So many trials in a row that never started, or whose nodes died, mean that the machine is at fault.
constexpr std::size_t kOutsideFailures = 3;

struct Stop {
  StopReason reason;
  std::string message;
};

double spent(const History& history, double TrialResult::*price) {
  double sum = 0;
  for (const Trial& trial : history) sum += trial.result.*price;
  return sum;
}

std::optional<Stop> outside_failure(const History& history) {
  if (history.size() < kOutsideFailures) return std::nullopt;
  const auto last = history.end() - static_cast<std::ptrdiff_t>(kOutsideFailures);
  if (std::any_of(last, history.end(), [](const Trial& t) { return speaks_of_point(t.result.state); })) {
    return std::nullopt;
  }
  return Stop{
      StopReason::kOutside,
      fmt::format("the last {} trials failed for reasons outside them; the last one: {}", kOutsideFailures,
                  history.back().result.message.empty() ? word(history.back().result.state)
                                                        : history.back().result.message)};
}

/// `history_before` trials were there at the start: a resumed search may try again after outside failures.
std::optional<Stop> spent_budget(const History& history, std::size_t history_before,
                                 const TrialBudget& budget) {
  if (history.size() >= budget.trials) {
    return Stop{StopReason::kTrials, fmt::format("{} trials were run, as many as allowed", history.size())};
  }
  if (spent(history, &TrialResult::price_s) >= budget.price_s) {
    return Stop{StopReason::kPrice, fmt::format("the {:.0f} s allowed for trials are spent", budget.price_s)};
  }
  if (spent(history, &TrialResult::price_money) >= budget.price_money) {
    return Stop{StopReason::kPrice,
                fmt::format("the money allowed for trials, {:g}, is spent", budget.price_money)};
  }
  if (history.size() >= history_before + kOutsideFailures) return outside_failure(history);
  return std::nullopt;
}

/// A result that contradicts itself must not reach a planner.
TrialResult checked(TrialResult result) {
  if (result.state == TrialState::kOk && !(std::isfinite(result.objective) && result.objective > 0)) {
    result.message = fmt::format("the trial ended well with an objective of {}", result.objective);
    result.state = TrialState::kNotANumber;
  }
  if (result.state != TrialState::kOk) result.objective = 0;
  if (!(std::isfinite(result.peak_bytes) && result.peak_bytes > 0)) result.peak_bytes = 0;
  if (!(result.price_s >= 0)) result.price_s = 0;
  if (!(result.price_money >= 0)) result.price_money = 0;
  return result;
}

}  // namespace

std::string_view word(StopReason reason) {
  switch (reason) {
    case StopReason::kTrials:
      return "trials";
    case StopReason::kPrice:
      return "price";
    case StopReason::kPlanner:
      return "planner";
    case StopReason::kInterrupted:
      return "interrupted";
    case StopReason::kOutside:
      return "outside";
  }
  return "";
}

TrialRun run_trials(Planner& planner, TrialEvaluator& evaluator, Recorder& recorder,
                    const TrialBudget& budget, const StopRequest& stop, History history) {
  TrialRun run{.history = std::move(history), .stopped = StopReason::kInterrupted, .message = {}};
  const std::size_t history_before = run.history.size();
  const auto ended = [&run](Stop why) {
    run.stopped = why.reason;
    run.message = std::move(why.message);
    return run;
  };
  const std::string interrupted = "the search was interrupted; what was measured is kept";
  while (true) {
    if (stop && stop()) return ended({StopReason::kInterrupted, interrupted});
    if (auto why = spent_budget(run.history, history_before, budget)) return ended(std::move(*why));
    const std::size_t number = run.history.size();
    const Decision decision = planner.next(run.history, budget);
    recorder.decided(number, decision);
    if (decision.kind == DecisionKind::kStop) return ended({StopReason::kPlanner, decision.why});
    const double left_s = budget.price_s - spent(run.history, &TrialResult::price_s);
    const TrialRequest request{.number = number,
                               .point = decision.point,
                               .repeat = decision.repeat,
                               .time_limit_s = std::min(budget.trial_limit_s, left_s)};
    recorder.began(request);
    const TrialResult result = checked(evaluator.run(
        request, stop ? stop : [] { return false; }));
    if (result.state == TrialState::kInterrupted) return ended({StopReason::kInterrupted, interrupted});
    recorder.ended(request, result);
    run.history.push_back({.point = request.point, .repeat = request.repeat, .result = result});
  }
}

TrialResult RecordedEvaluator::run(const TrialRequest& request, const StopRequest&) {
  const std::string asked = fmt::format("trial {} is {} repeat {}", request.number,
                                        describe(space_, request.point), request.repeat);
  if (request.number >= recorded_.size()) {
    throw base::UserError(
        fmt::format("the replay diverges: {}, but only {} trials were recorded", asked, recorded_.size()));
  }
  const Trial& trial = recorded_[request.number];
  if (trial.point != request.point || trial.repeat != request.repeat) {
    throw base::UserError(fmt::format("the replay diverges: {}, but {} repeat {} was recorded", asked,
                                      describe(space_, trial.point), trial.repeat));
  }
  return trial.result;
}

}  // namespace sextant::search
