#include "search/guided.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace sextant::search {
namespace {

/// A credit below this ends the requests: proposals that promised as much have failed as well.
constexpr int kLeastCredit = -1;
constexpr std::size_t kNearest = 3;

/// The first trial that says something of `point`.
std::optional<std::size_t> tried_in(const History& history, const Point& point) {
  const auto found = std::ranges::find_if(history, [&](const Trial& trial) {
    return trial.point == point && speaks_of_point(trial.result.state);
  });
  if (found == history.end()) return std::nullopt;
  return static_cast<std::size_t>(found - history.begin());
}

/// The best single result; 0 when nothing ran.
double best_of(const History& history) {
  const auto best = best_trial(history);
  return best ? history[*best].result.objective : 0;
}

}  // namespace

Guided::Guided(const Prior& prior, Proposer& proposer, GuidedOptions options,
               std::function<void(const std::string&)> note)
    : prior_(prior),
      proposer_(proposer),
      options_(options),
      note_(std::move(note)),
      surrogate_(prior, options.surrogate) {
  restart();
}

void Guided::restart() {
  state_ = {};
  proposer_.begin();
  state_.credit = options_.first_credit;
}

Decision Guided::next(const History& history, const TrialBudget& budget) {
  const bool continues = state_.history.size() <= history.size() &&
                         std::equal(state_.history.begin(), state_.history.end(), history.begin());
  if (!continues) restart();
  while (state_.history.size() < history.size()) settle(history[state_.history.size()]);
  return decide(budget);
}

const Decision& Guided::decide(const TrialBudget& budget) {
  if (state_.decision) return *state_.decision;
  const Decision own = surrogate_.next(state_.history, budget);
  std::optional<Decision> followed;
  if (state_.silent_because.empty()) followed = proposed(own);
  state_.decision = followed ? std::move(*followed) : own;
  return *state_.decision;
}

void Guided::settle(const Trial& trial) {
  const bool followed = state_.wager && trial.point == state_.decision->point;
  if (followed && speaks_of_point(trial.result.state)) {
    const bool won = trial.result.state == TrialState::kOk &&
                     trial.result.objective > (1 + options_.winning_share) * state_.wager->to_beat;
    if (!won) --state_.credit;
    if (state_.credit < kLeastCredit)
      silence("its proposals did worse than the surrogate's own candidates were expected to");
  }
  state_.history.push_back(trial);
  state_.decision.reset();
  state_.wager.reset();
}

bool Guided::deserves_trial(const Prediction& proposal, const Decision& own) const {
  if (own.kind == DecisionKind::kStop) return state_.credit > 0;
  const auto says = [](const Trial& trial) { return speaks_of_point(trial.result.state); };
  if (std::ranges::none_of(state_.history, says)) return false;
  if (proposal.objective < options_.plausible_share * own.predicted.objective) return false;
  if (best_of(state_.history) <= 0)
    return state_.credit > 0 &&
           proposal.probability_runs >= options_.running_share * own.predicted.probability_runs;
  if (state_.credit > 0) return true;
  return proposal.gain >= own.predicted.gain && proposal.objective >= own.predicted.objective;
}

std::optional<Decision> Guided::proposed(const Decision& own) {
  drop_tried();
  if (auto decision = from_queue(own)) return decision;
  const bool stale = state_.history.size() >= state_.asked_after + options_.patience;
  if (!state_.queue.empty() && !stale) return std::nullopt;
  state_.queue.clear();
  ask();
  return from_queue(own);
}

std::optional<Decision> Guided::from_queue(const Decision& own) {
  if (state_.queue.empty()) return std::nullopt;
  std::vector<Point> points;
  for (const Proposal& proposal : state_.queue) points.push_back(proposal.point);
  const std::vector<Opinion> opinions = surrogate_.opinions(state_.history, points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i] != own.point && !deserves_trial(opinions[i].predicted, own)) continue;
    const Proposal chosen = state_.queue[i];
    state_.queue.erase(state_.queue.begin() + static_cast<std::ptrdiff_t>(i));
    if (chosen.point != own.point)
      state_.wager = Wager{.to_beat = std::max(own.predicted.objective, best_of(state_.history))};
    return Decision{.kind = DecisionKind::kTrial,
                    .planner = std::string(proposer_.name()),
                    .point = chosen.point,
                    .repeat = next_repeat(state_.history, chosen.point),
                    .why = chosen.rationale.empty() ? "proposed" : chosen.rationale,
                    .predicted = opinions[i].predicted};
  }
  return std::nullopt;
}

void Guided::ask() {
  if (state_.requests == options_.most_requests) {
    silence(fmt::format("it was asked {} times, as often as allowed", options_.most_requests));
    return;
  }
  ++state_.requests;
  state_.asked_after = state_.history.size();
  const ProposalAnswer answer = proposer_.propose(
      {.history = state_.history, .rejected = std::exchange(state_.rejected, {}), .wanted = options_.wanted});
  for (const Proposal& proposal : answer.ranked) {
    if (admit(proposal)) state_.queue.push_back(proposal);
  }
  if (!answer.failure.empty()) {
    silence(answer.failure);
  } else if (state_.rejections > options_.most_rejections) {
    silence(
        fmt::format("{} of its proposals were illegal or repeated, more than allowed", state_.rejections));
  }
}

bool Guided::admit(const Proposal& proposal) {
  const auto same = [&](const Proposal& other) { return other.point == proposal.point; };
  if (std::ranges::any_of(state_.queue, same)) {
    reject(proposal, "proposed twice");
  } else if (const auto number = tried_in(state_.history, proposal.point)) {
    reject(proposal, fmt::format("repeats trial {}", *number + 1));
  } else if (const auto index = prior_.find(proposal.point); !index) {
    const auto rules = prior_.violated ? prior_.violated(proposal.point) : std::vector<std::string>{};
    reject(proposal,
           rules.empty() ? "is no candidate of this search" : fmt::format("{}", fmt::join(rules, "; ")));
  } else if (!prior_.fits(prior_.legal[*index])) {
    reject(proposal, "is projected to need more memory than there is");
  } else {
    return true;
  }
  return false;
}

void Guided::reject(const Proposal& proposal, std::string reason) {
  ++state_.rejections;
  Refusal refusal{.proposal = proposal, .reason = std::move(reason), .nearest = {}};
  for (const std::size_t index : nearest_legal(prior_, proposal.point, kNearest + state_.history.size())) {
    const Point& point = prior_.legal[index].point;
    if (refusal.nearest.size() < kNearest && !tried_in(state_.history, point))
      refusal.nearest.push_back(point);
  }
  state_.rejected.push_back(std::move(refusal));
}

void Guided::drop_tried() {
  std::erase_if(state_.queue, [&](const Proposal& proposal) {
    return tried_in(state_.history, proposal.point).has_value();
  });
}

void Guided::silence(std::string why) {
  state_.silent_because = std::move(why);
  if (note_) note_(fmt::format("{} is not asked any more: {}", proposer_.name(), state_.silent_because));
}

}  // namespace sextant::search
