#include "tuner/measured_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "search/guided.h"
#include "search/step_by_step.h"
#include "search/surrogate.h"
#include "search/sweep.h"
#include "tuner/sweep.h"

namespace sextant::tuner {
namespace {

using search::Decision;
using search::DecisionKind;
using search::History;

/// A point whose trials failed so often for reasons outside of it is left alone.
constexpr std::size_t kMostAttempts = 3;
/// Of the trials, for the sweep that comes before the surrogate. The surrogate learns from them too, but
/// would have chosen better ones: the table of effects costs three to six trials (docs/design/search.md).
constexpr double kSweepShare = 0.2;

/// The workload's own layout before everything else: it is what all others are compared with, and what the
/// user knows to run.
class OwnFirst : public search::Planner {
 public:
  OwnFirst(const MeasuredSetup& setup, std::unique_ptr<search::Planner> then)
      : setup_(setup), then_(std::move(then)) {}

  std::string_view name() const override { return then_->name(); }

  Decision next(const History& history, const search::TrialBudget& budget) override {
    const auto own = setup_.own ? setup_.prior.find(*setup_.own) : std::nullopt;
    if (!own || !wanted(history)) return then_->next(history, budget);
    const double projected = setup_.prior.legal[*own].objective;
    return {.kind = DecisionKind::kTrial,
            .planner = "baseline",
            .point = *setup_.own,
            .repeat = search::next_repeat(history, *setup_.own),
            .why = "the workload's own layout: what all others are compared with",
            .predicted = {.objective = projected, .low = projected, .high = projected}};
  }

 private:
  bool wanted(const History& history) const {
    const auto standing = search::standing(history, *setup_.own);
    if (!standing) return true;
    return !search::speaks_of_point(standing->state) && standing->repeats < kMostAttempts;
  }

  const MeasuredSetup& setup_;
  std::unique_ptr<search::Planner> then_;
};

/// A planner, and when it stops another.
class InTurn : public search::Planner {
 public:
  InTurn(std::unique_ptr<search::Planner> first, std::unique_ptr<search::Planner> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  std::string_view name() const override { return "auto"; }

  Decision next(const History& history, const search::TrialBudget& budget) override {
    Decision decision = first_->next(history, budget);
    if (decision.kind == DecisionKind::kTrial) return decision;
    return second_->next(history, budget);
  }

 private:
  std::unique_ptr<search::Planner> first_;
  std::unique_ptr<search::Planner> second_;
};

/// From the fastest projection down, each candidate once.
class FastestFirst : public search::Planner {
 public:
  explicit FastestFirst(const search::Prior& prior) : prior_(prior), order_(prior.legal.size()) {
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::ranges::stable_sort(order_, std::ranges::greater{},
                             [&](std::size_t i) { return prior.legal[i].objective; });
  }

  std::string_view name() const override { return "exhaustive"; }

  Decision next(const History& history, const search::TrialBudget& /*budget*/) override {
    for (std::size_t rank = 0; rank < order_.size(); ++rank) {
      const search::Candidate& candidate = prior_.legal[order_[rank]];
      if (search::next_repeat(history, candidate.point) > 0) continue;
      return {.kind = DecisionKind::kTrial,
              .planner = "exhaustive",
              .point = candidate.point,
              .repeat = 0,
              .why = fmt::format("number {} by projection", rank + 1),
              .predicted = {
                  .objective = candidate.objective, .low = candidate.objective, .high = candidate.objective}};
    }
    return {.kind = DecisionKind::kStop,
            .planner = "exhaustive",
            .point = {},
            .repeat = 0,
            .why = "every candidate was run",
            .predicted = {}};
  }

 private:
  const search::Prior& prior_;
  std::vector<std::size_t> order_;
};

}  // namespace

std::unique_ptr<search::Planner> measured_planner(const MeasuredSetup& setup, search::Proposer* proposer,
                                                  const std::function<void(const std::string&)>& note) {
  const std::string& name = setup.flags.planner;
  const auto learning = [&]() -> std::unique_ptr<search::Planner> {
    if (proposer == nullptr)
      return std::make_unique<search::Surrogate>(setup.prior, search::SurrogateOptions{});
    return std::make_unique<search::Guided>(setup.prior, *proposer, search::GuidedOptions{}, note);
  };
  const auto surrogate = [&] { return std::make_unique<OwnFirst>(setup, learning()); };
  const auto in_turns = [&](std::unique_ptr<search::Planner> planner) -> std::unique_ptr<search::Planner> {
    if (proposer == nullptr) return planner;
    return std::make_unique<search::StepByStep>(std::move(planner));
  };
  const std::size_t trials = planned_trials(setup.flags.measure);
  if (name == "auto") {
    const auto share = static_cast<std::size_t>(static_cast<double>(trials) * kSweepShare);
    return in_turns(std::make_unique<InTurn>(short_sweep(setup, share), surrogate()));
  }
  if (name == "surrogate") return in_turns(surrogate());
  if (name == "sweep") return std::make_unique<search::Sweep>(setup.prior, sweep_start(setup));
  if (name == "exhaustive")
    return std::make_unique<OwnFirst>(setup, std::make_unique<FastestFirst>(setup.prior));
  const std::vector<std::string> known{"auto", "sweep", "surrogate", "exhaustive"};
  throw base::UserError({"--planner " + name}, {},
                        "no such planner of trials; there are auto, sweep, surrogate and exhaustive" +
                            base::did_you_mean(name, known));
}

}  // namespace sextant::tuner
