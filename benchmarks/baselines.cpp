#include "baselines.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace sextant::benchmarks {
namespace {

using search::Decision;
using search::DecisionKind;
using search::History;
using search::Point;
using search::Prior;
using search::Trial;
using search::TrialBudget;
using search::TrialState;

using Indices = std::vector<std::size_t>;

constexpr std::size_t kStartupTrials = 10;
constexpr std::size_t kDraws = 24;
constexpr std::size_t kMostAttempts = 2000;  ///< of drawing a point that is legal, fits and is new
constexpr double kHot = 0.1;
constexpr double kCold = 0.005;

/// Draws for one decision, always the same for the same seed and trial.
class Draws {
 public:
  Draws(std::uint64_t seed, std::size_t trial) : random_(seed * 1000003 + trial) {}
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  double share() { return static_cast<double>(random_() >> 11) * 0x1.0p-53; }
  /// An index, in proportion to the weights.
  std::size_t weighted(const std::vector<double>& weights) {
    double left = share() * std::accumulate(weights.begin(), weights.end(), 0.0);
    for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
      if (left < weights[i]) return i;
      left -= weights[i];
    }
    return weights.size() - 1;
  }

 private:
  std::mt19937_64 random_;
};

/// What all baselines share: the candidates, and how a decision looks.
class Baseline : public search::Planner {
 public:
  Baseline(const Prior& prior, std::string name, std::uint64_t seed)
      : prior_(prior), name_(std::move(name)), seed_(seed) {
    for (std::size_t i = 0; i < prior.legal.size(); ++i) {
      if (prior.fits(prior.legal[i])) candidates_.push_back(i);
    }
    best_projected_ =
        *std::ranges::max_element(candidates_, {}, [&](std::size_t i) { return prior.legal[i].objective; });
  }

  std::string_view name() const override { return name_; }

  Decision next(const History& history, const TrialBudget& budget) override {
    std::vector<bool> tried(prior_.legal.size(), false);
    for (const Trial& trial : history) tried[*prior_.find(trial.point)] = true;
    Decision decision;
    decision.planner = name_;
    Indices open;
    std::ranges::copy_if(candidates_, std::back_inserter(open), [&](std::size_t i) { return !tried[i]; });
    if (open.empty()) {
      decision.kind = DecisionKind::kStop;
      return decision;
    }
    const std::size_t chosen = history.empty() ? best_projected_ : choose(history, budget, tried, open);
    decision.point = prior_.legal[chosen].point;
    return decision;
  }

 protected:
  /// One of `open`, the candidates that were not tried.
  virtual std::size_t choose(const History& history, const TrialBudget& budget,
                             const std::vector<bool>& tried, const Indices& open) = 0;

  const Prior& prior() const { return prior_; }
  Draws draws(std::size_t trial) const { return {seed_, trial}; }

 private:
  const Prior& prior_;
  std::string name_;
  std::uint64_t seed_;
  Indices candidates_;
  std::size_t best_projected_ = 0;
};

class Random : public Baseline {
 public:
  Random(const Prior& prior, std::uint64_t seed) : Baseline(prior, "random", seed) {}

 private:
  std::size_t choose(const History& history, const TrialBudget&, const std::vector<bool>&,
                     const Indices& open) override {
    return open[draws(history.size()).below(open.size())];
  }
};

class ProjectedOrder : public Baseline {
 public:
  explicit ProjectedOrder(const Prior& prior) : Baseline(prior, "projected order", 0) {}

 private:
  std::size_t choose(const History&, const TrialBudget&, const std::vector<bool>&,
                     const Indices& open) override {
    return *std::ranges::max_element(open, {}, [&](std::size_t i) { return prior().legal[i].objective; });
  }
};

/// Trials that ran, best first, then those that did not.
std::vector<const Trial*> ranked(const History& history) {
  std::vector<const Trial*> trials;
  for (const Trial& trial : history) trials.push_back(&trial);
  std::ranges::stable_sort(trials, std::ranges::greater{},
                           [](const Trial* t) { return t->result.objective; });
  return trials;
}

class ParzenEstimator : public Baseline {
 public:
  ParzenEstimator(const Prior& prior, std::uint64_t seed) : Baseline(prior, "TPE", seed) {}

 private:
  /// By axis and value: how often in the trials, and one more spread over all values.
  using Counts = std::vector<std::vector<double>>;

  Counts counts(const std::vector<const Trial*>& trials, std::size_t first, std::size_t last) const {
    Counts result;
    for (std::size_t axis = 0; axis < prior().space.axes.size(); ++axis) {
      const std::size_t values = prior().space.axes[axis].values.size();
      std::vector<double> share(values, 1.0 / static_cast<double>(values));
      for (std::size_t i = first; i < last; ++i) share[trials[i]->point[axis]] += 1;
      for (double& value : share) value /= static_cast<double>(last - first) + 1;
      result.push_back(std::move(share));
    }
    return result;
  }

  std::size_t choose(const History& history, const TrialBudget&, const std::vector<bool>& tried,
                     const Indices& open) override {
    Draws random = draws(history.size());
    if (history.size() < kStartupTrials) return open[random.below(open.size())];
    const std::vector<const Trial*> trials = ranked(history);
    const std::size_t split = std::min<std::size_t>(
        25, static_cast<std::size_t>(std::ceil(0.1 * static_cast<double>(trials.size()))));
    const Counts good = counts(trials, 0, split);
    const Counts bad = counts(trials, split, trials.size());
    std::optional<std::size_t> best;
    double best_ratio = 0;
    std::size_t drawn = 0;
    for (std::size_t attempt = 0; attempt < kMostAttempts && drawn < kDraws; ++attempt) {
      Point point;
      double ratio = 0;
      for (std::size_t axis = 0; axis < good.size(); ++axis) {
        const std::size_t value = random.weighted(good[axis]);
        point.push_back(static_cast<std::uint16_t>(value));
        ratio += std::log(good[axis][value] / bad[axis][value]);
      }
      const auto index = prior().find(point);
      if (!index || tried[*index] || !prior().fits(prior().legal[*index])) continue;
      ++drawn;
      if (!best || ratio > best_ratio) {
        best = index;
        best_ratio = ratio;
      }
    }
    return best.value_or(open[random.below(open.size())]);
  }
};

class Annealing : public Baseline {
 public:
  Annealing(const Prior& prior, std::uint64_t seed) : Baseline(prior, "annealing", seed) {}

 private:
  /// Where the walk stands: recomputed from the history, so that a decision depends on nothing else.
  const Trial& current(const History& history, std::size_t trials) const {
    const Trial* now = &history.front();
    for (std::size_t t = 1; t < history.size(); ++t) {
      const double worth = history[t].result.objective;
      const double before = now->result.objective;
      if (worth <= 0) continue;
      const double progress =
          static_cast<double>(t) / static_cast<double>(std::max<std::size_t>(trials, 2) - 1);
      const double temperature = kHot * std::pow(kCold / kHot, progress);
      const bool better = before <= 0 || worth >= before;
      if (better || draws(t).share() < std::exp(std::log(worth / before) / temperature)) now = &history[t];
    }
    return *now;
  }

  std::size_t choose(const History& history, const TrialBudget& budget, const std::vector<bool>&,
                     const Indices& open) override {
    const Point& from = current(history, budget.trials).point;
    Indices near;
    for (const std::size_t i : open) {
      const Point& point = prior().legal[i].point;
      int changed = 0;
      for (std::size_t axis = 0; axis < point.size(); ++axis) changed += point[axis] != from[axis] ? 1 : 0;
      if (changed <= 2) near.push_back(i);
    }
    const Indices& choices = near.empty() ? open : near;
    // The draw of acceptance comes first in the stream of a trial, so this one is of another stream.
    Draws random = draws(history.size() + 1000);
    return choices[random.below(choices.size())];
  }
};

}  // namespace

std::unique_ptr<search::Planner> random_search(const Prior& prior, std::uint64_t seed) {
  return std::make_unique<Random>(prior, seed);
}

std::unique_ptr<search::Planner> projected_order(const Prior& prior) {
  return std::make_unique<ProjectedOrder>(prior);
}

std::unique_ptr<search::Planner> parzen_estimator(const Prior& prior, std::uint64_t seed) {
  return std::make_unique<ParzenEstimator>(prior, seed);
}

std::unique_ptr<search::Planner> annealing(const Prior& prior, std::uint64_t seed) {
  return std::make_unique<Annealing>(prior, seed);
}

std::optional<Point> best_measured(const History& history) {
  const auto best = search::best_trial(history);
  return best ? std::optional(history[*best].point) : std::nullopt;
}

}  // namespace sextant::benchmarks
