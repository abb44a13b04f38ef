#include "search/surrogate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "search/belief.h"
#include "search/trial_gain.h"

namespace sextant::search {
namespace {

using Eigen::Index;

constexpr double kNormal95 = 1.6449;  ///< 95th percentile of the standard normal: both sides make 90 %
/// A point that was never run is recommended only when it runs with this probability.
constexpr double kNearlySure = 0.95;

const Prior& checked(const Prior& prior) {
  check_prior(prior);
  return prior;
}

/// The row with the largest gain; of equal ones the first.
std::optional<std::size_t> most(const Belief& belief, const Eigen::VectorXd& gains) {
  std::optional<std::size_t> best;
  for (std::size_t row = 0; row < belief.places.size(); ++row) {
    if (belief.seen[row] == Seen::kDidNotRun) continue;
    if (!best || gains[static_cast<Index>(row)] > gains[static_cast<Index>(*best)]) best = row;
  }
  return best;
}

std::string reason(const Belief& belief, const Prediction& predicted, std::size_t row) {
  const double runs = 100 * predicted.probability_runs;
  if (!anything_ran(belief)) {
    return fmt::format("nothing has run yet; projected best of what should run ({:.0f} %)", runs);
  }
  const double gain = 100 * predicted.gain;
  if (belief.seen[row] == Seen::kRan) {
    return fmt::format("repeated, because which of the best is better is in doubt: worth {:.2f} % on average",
                       gain);
  }
  if (belief.surprise[static_cast<Index>(row)] > 0.2) {
    return fmt::format("most to gain, {:.2f} % on average, and unlike anything seen; it runs with {:.0f} %",
                       gain, runs);
  }
  return fmt::format("most to gain, {:.2f} % on average; it runs with {:.0f} %", gain, runs);
}

struct Known {
  History history;
  std::vector<std::size_t> also;
  Belief belief;
  Eigen::VectorXd gains;
};

Prediction prediction(const Known& known, std::size_t row) {
  const auto i = static_cast<Index>(row);
  const double mean = known.belief.mean[i];
  const double reach = kNormal95 * known.belief.deviation[i];
  return {.objective = std::exp(mean),
          .low = std::exp(mean - reach),
          .high = std::exp(mean + reach),
          .probability_runs = known.belief.runs[i],
          .gain = anything_ran(known.belief) ? known.gains[i] : 0};
}

}  // namespace

/// The belief after the last history that was asked about: several questions follow each trial.
class Surrogate::Mind {
 public:
  Mind(const Prior& given, SurrogateOptions chosen)
      : prior(checked(given)), options(std::move(chosen)), model_(prior, options.belief.correction) {}

  const Known& know(const History& history, std::vector<std::size_t> also = {}) {
    if (!known_ || known_->also != also || known_->history != history) {
      Belief belief = believe(prior, model_, history, options.belief, also);
      Eigen::VectorXd gains = trial_gains(belief, options.belief.surprise);
      known_ = Known{history, std::move(also), std::move(belief), std::move(gains)};
    }
    return *known_;
  }

  const Prior& prior;
  const SurrogateOptions options;

 private:
  CorrectionModel model_;
  std::optional<Known> known_;
};

Surrogate::Surrogate(const Prior& prior, SurrogateOptions options)
    : mind_(std::make_unique<Mind>(prior, std::move(options))) {}

Surrogate::~Surrogate() = default;

Decision Surrogate::next(const History& history, const TrialBudget&) {
  Decision decision;
  decision.planner = name();
  const Known& known = mind_->know(history);
  const auto row = most(known.belief, known.gains);
  if (!row) {
    decision.kind = DecisionKind::kStop;
    decision.why = mind_->prior.legal.empty() ? "no point of the space is legal"
                                              : "every legal point was tried, and none runs";
    return decision;
  }
  const Prediction predicted = prediction(known, *row);
  const bool any = anything_ran(known.belief);
  const bool all_tried = std::ranges::find(known.belief.seen, Seen::kNo) == known.belief.seen.end();
  if (any && (predicted.gain < mind_->options.least_gain || (all_tried && predicted.gain <= 0))) {
    decision.kind = DecisionKind::kStop;
    decision.why = fmt::format("no further trial is expected to gain more than {:.2f} %",
                               100 * mind_->options.least_gain);
    return decision;
  }
  decision.point = mind_->prior.legal[known.belief.places[*row]].point;
  decision.repeat = next_repeat(history, decision.point);
  decision.why = reason(known.belief, predicted, *row);
  decision.predicted = predicted;
  return decision;
}

std::optional<Recommendation> Surrogate::recommend(const History& history) {
  const Known& known = mind_->know(history);
  const Belief& belief = known.belief;
  std::optional<std::size_t> best;
  double best_worth = -std::numeric_limits<double>::infinity();
  for (std::size_t row = 0; row < belief.places.size(); ++row) {
    const auto i = static_cast<Index>(row);
    if (belief.seen[row] == Seen::kDidNotRun) continue;
    if (belief.seen[row] == Seen::kNo && belief.runs[i] < kNearlySure) continue;
    const double worth = belief.mean[i] - (belief.seen[row] == Seen::kNo ? belief.deviation[i] : 0);
    if (worth > best_worth) {
      best_worth = worth;
      best = row;
    }
  }
  if (!best) return std::nullopt;
  Recommendation result{.point = mind_->prior.legal[belief.places[*best]].point,
                        .predicted = prediction(known, *best),
                        .seen = belief.seen[*best]};
  if (const auto stands = standing(history, result.point)) {
    result.measured = stands->objective;
    result.repeats = stands->measured;
  }
  return result;
}

std::vector<Opinion> Surrogate::opinions(const History& history, std::span<const Point> points) {
  std::vector<std::size_t> also;
  for (const Point& point : points) {
    if (const auto index = mind_->prior.find(point)) also.push_back(*index);
  }
  const Known& known = mind_->know(history, also);
  std::vector<Opinion> result;
  for (const Point& point : points) {
    Opinion opinion;
    if (const auto index = mind_->prior.find(point)) {
      const auto row = static_cast<std::size_t>(std::ranges::lower_bound(known.belief.places, *index) -
                                                known.belief.places.begin());
      opinion = {.known = true, .seen = known.belief.seen[row], .predicted = prediction(known, row)};
    }
    result.push_back(opinion);
  }
  return result;
}

std::vector<Point> Surrogate::proposals(const History& history, std::size_t count) {
  const Known& known = mind_->know(history);
  std::vector<std::size_t> rows(known.belief.places.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  std::erase_if(rows, [&](std::size_t row) { return known.belief.seen[row] == Seen::kDidNotRun; });
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [&](std::size_t row) { return known.gains[static_cast<Index>(row)]; });
  std::vector<Point> result;
  for (std::size_t i = 0; i < std::min(count, rows.size()); ++i) {
    result.push_back(mind_->prior.legal[known.belief.places[rows[i]]].point);
  }
  return result;
}

}  // namespace sextant::search
