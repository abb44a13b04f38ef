#include "search/belief.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace sextant::search {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

struct Evidence {
  std::vector<Correction> measured;
  std::vector<Seen> seen;  // by legal point
};

Evidence gather(const Prior& prior, const History& history, bool allow_borderline) {
  Evidence evidence{.measured = {}, .seen = std::vector<Seen>(prior.legal.size(), Seen::kNo)};
  for (const Trial& trial : history) {
    const auto index = prior.find(trial.point);
    if (!index) {
      throw base::UserError(
          fmt::format("a trial of {} is not in the space {}: the history is of another search",
                      describe(prior.space, trial.point), prior.space.name));
    }
    if (!speaks_of_point(trial.result.state)) continue;
    Seen& seen = evidence.seen[*index];
    if (trial.result.state == TrialState::kOk) {
      evidence.measured.push_back({*index, std::log(trial.result.objective / prior.legal[*index].objective)});
      if (seen == Seen::kNo || allow_borderline) seen = Seen::kRan;
    } else if (seen == Seen::kNo || !allow_borderline) {
      seen = Seen::kDidNotRun;
    }
  }
  return evidence;
}

VectorXd probability_of_running(const Prior& prior, const CorrectionModel& model, const History& history,
                                const BeliefOptions& options) {
  VectorXd runs =
      probability_of_fitting(prior, memory_posterior(prior, model.points(), history, options.memory));
  const FailureModel failures(prior.space, history, options.failures);
  for (std::size_t i = 0; i < prior.legal.size(); ++i)
    runs[static_cast<Index>(i)] *= failures.works(prior.legal[i].point);
  return runs;
}

/// The heaviest hypothesis, with nothing but what goes with single axes.
Hypothesis without_strong_pairs(const std::vector<Hypothesis>& hypotheses) {
  for (const Hypothesis& hypothesis : hypotheses) {
    if (hypothesis.structure.empty()) return hypothesis;
  }
  Hypothesis plain = hypotheses.front();
  plain.structure.clear();
  return plain;
}

/// Visits pairs of turned axes with the values of all points on them.
template <typename Visit>
void for_each_pair(const Prior& prior, const PointTable& points, Visit visit) {
  const std::vector<std::size_t>& axes = points.axes();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    for (std::size_t j = i + 1; j < axes.size(); ++j) {
      const std::size_t width = prior.space.axes[axes[j]].values.size();
      const std::size_t cells = prior.space.axes[axes[i]].values.size() * width;
      const auto a = points.values(axes[i]);
      const auto b = points.values(axes[j]);
      visit(cells, [a, b, width](std::size_t point) { return a[point] * width + b[point]; });
    }
  }
}

/// The points that look best of each pair of values, those that ran, and `also`.
std::vector<std::size_t> shortlist(const Prior& prior, const PointTable& points, const VectorXd& score,
                                   const std::vector<Seen>& seen, std::size_t per_pair,
                                   std::span<const std::size_t> also) {
  std::vector<std::size_t> order;
  std::vector<bool> listed(prior.legal.size(), false);
  for (std::size_t i = 0; i < prior.legal.size(); ++i) {
    if (seen[i] == Seen::kNo) order.push_back(i);
    listed[i] = seen[i] == Seen::kRan;
  }
  for (const std::size_t i : also) listed[i] = true;
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t i) { return score[static_cast<Index>(i)]; });
  if (!order.empty()) listed[order.front()] = true;  // spaces with fewer than two axes have no pairs
  for_each_pair(prior, points, [&](std::size_t cells, auto cell_of) {
    std::vector<std::size_t> taken(cells, 0);
    for (const std::size_t i : order) {
      std::size_t& count = taken[cell_of(i)];
      if (count == per_pair) continue;
      ++count;
      listed[i] = true;
    }
  });
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    if (listed[i]) places.push_back(i);
  }
  return places;
}

/// 1 - (1 - p)^(pairs of values of the place that no point which ran has).
VectorXd probability_of_surprise(const Prior& prior, const PointTable& points, const std::vector<Seen>& seen,
                                 const std::vector<std::size_t>& places, double probability) {
  VectorXd unseen = VectorXd::Zero(static_cast<Index>(places.size()));
  for_each_pair(prior, points, [&](std::size_t cells, auto cell_of) {
    std::vector<bool> known(cells, false);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i] == Seen::kRan) known[cell_of(i)] = true;
    }
    for (std::size_t row = 0; row < places.size(); ++row) {
      if (!known[cell_of(places[row])]) unseen[static_cast<Index>(row)] += 1;
    }
  });
  return unseen.unaryExpr([probability](double pairs) { return 1 - std::pow(1 - probability, pairs); });
}

/// Mean and deviation over all views: the law of total variance.
void average(Belief& belief) {
  belief.mean = VectorXd::Zero(static_cast<Index>(belief.places.size()));
  VectorXd squares = belief.mean;
  for (const View& view : belief.views) belief.mean += view.weight * view.mean;
  for (const View& view : belief.views) {
    squares +=
        view.weight * ((view.mean - belief.mean).array().square() + view.deviation.array().square()).matrix();
  }
  belief.deviation = squares.cwiseSqrt();
}

}  // namespace

Belief believe(const Prior& prior, const CorrectionModel& model, const History& history,
               const BeliefOptions& options, std::span<const std::size_t> also) {
  const Evidence evidence = gather(prior, history, options.allow_borderline);
  const std::vector<Hypothesis> hypotheses = model.weigh(evidence.measured);
  const VectorXd runs = probability_of_running(prior, model, history, options);
  std::vector<std::size_t> all(prior.legal.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const Hypothesis plain = without_strong_pairs(hypotheses);
  const CorrectionPosterior everywhere = model.predict(evidence.measured, std::span(&plain, 1), all).front();
  VectorXd score(static_cast<Index>(all.size()));
  for (Index i = 0; i < score.size(); ++i) {
    const double projected = prior.legal[static_cast<std::size_t>(i)].objective;
    score[i] = projected * std::exp(everywhere.mean[i] + everywhere.deviation[i]) * runs[i];
  }
  Belief belief;
  belief.places = shortlist(prior, model.points(), score, evidence.seen, options.points_per_pair, also);
  const auto rows = static_cast<Index>(belief.places.size());
  belief.runs.resize(rows);
  VectorXd log_projected(rows);
  for (Index row = 0; row < rows; ++row) {
    const std::size_t place = belief.places[static_cast<std::size_t>(row)];
    belief.seen.push_back(evidence.seen[place]);
    belief.runs[row] = runs[static_cast<Index>(place)];
    log_projected[row] = std::log(prior.legal[place].objective);
  }
  for (CorrectionPosterior& posterior : model.predict(evidence.measured, hypotheses, belief.places)) {
    belief.views.push_back({.weight = posterior.hypothesis.weight,
                            .noise = posterior.hypothesis.scales.noise,
                            .mean = log_projected + posterior.mean,
                            .deviation = std::move(posterior.deviation)});
  }
  belief.surprise = probability_of_surprise(prior, model.points(), evidence.seen, belief.places,
                                            options.surprise.probability);
  average(belief);
  return belief;
}

}  // namespace sextant::search
