#include "contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "advisors.h"
#include "baselines.h"
#include "search/guided.h"
#include "search/surrogate.h"
#include "search/sweep.h"

namespace sextant::benchmarks {
namespace {

using search::History;
using search::Point;
using search::Prior;

constexpr double kWithin = 0.01;
constexpr std::size_t kResamples = 2000;
constexpr std::size_t kSweepTrials = 6;  ///< a fifth of 30, as tuner/measured_planner.cpp has it

search::ScaleChoice exactly(double value) { return {{value}, {0.0}}; }

/// What a planner believes that knows all of the truth except which pairs of values gain and which lose.
search::SurrogateOptions told(const VirtualCluster& cluster) {
  search::SurrogateOptions options;
  options.belief.correction = {.bias = 1e-3,
                               .main = exactly(1e-4),
                               .weak = exactly(1e-4),
                               .noise = exactly(0.02),
                               .length = {{0.0, 1.0, 3.0}, {0.0, 0.0, 0.0}},
                               .strong = exactly(0.2),
                               .only = {{cluster.interacting()}}};
  options.belief.surprise.probability = 0;
  return options;
}

/// A planner, and what it would recommend.
struct Player {
  std::unique_ptr<search::Planner> planner;
  std::function<std::optional<Point>(const History&)> recommend;
};

Player surrogate(const Prior& prior, search::SurrogateOptions options) {
  auto planner = std::make_unique<search::Surrogate>(prior, std::move(options));
  auto recommend = [raw = planner.get()](const History& history) -> std::optional<Point> {
    const auto recommendation = raw->recommend(history);
    return recommendation ? std::optional(recommendation->point) : std::nullopt;
  };
  return {std::move(planner), std::move(recommend)};
}

/// A sweep until it stops, then another planner.
class AfterSweep : public search::Planner {
 public:
  AfterSweep(search::Sweep sweep, std::unique_ptr<search::Planner> then)
      : sweep_(std::move(sweep)), then_(std::move(then)) {}
  std::string_view name() const override { return "auto"; }
  search::Decision next(const History& history, const search::TrialBudget& budget) override {
    search::Decision decision = sweep_.next(history, budget);
    return decision.kind == search::DecisionKind::kTrial ? decision : then_->next(history, budget);
  }

 private:
  search::Sweep sweep_;
  std::unique_ptr<search::Planner> then_;
};

Player after_sweep(const CaseStudy& study) {
  Player player = surrogate(study.prior, {});
  search::Sweep sweep(study.prior, study.own.value(),
                      {.order = search::SweepOrder::kValueAnAxis, .most_trials = kSweepTrials});
  player.planner = std::make_unique<AfterSweep>(std::move(sweep), std::move(player.planner));
  return player;
}

/// A guided search and the proposer that it listens to.
class Advised : public search::Planner {
 public:
  Advised(const Prior& prior, std::unique_ptr<search::Proposer> proposer)
      : proposer_(std::move(proposer)), guided_(prior, *proposer_, {}) {}
  std::string_view name() const override { return guided_.name(); }
  search::Decision next(const History& history, const search::TrialBudget& budget) override {
    return guided_.next(history, budget);
  }
  search::Surrogate& surrogate() { return guided_.surrogate(); }

 private:
  std::unique_ptr<search::Proposer> proposer_;
  search::Guided guided_;
};

Player advised(const Prior& prior, std::unique_ptr<search::Proposer> proposer) {
  auto planner = std::make_unique<Advised>(prior, std::move(proposer));
  auto recommend = [raw = planner.get()](const History& history) -> std::optional<Point> {
    const auto recommendation = raw->surrogate().recommend(history);
    return recommendation ? std::optional(recommendation->point) : std::nullopt;
  };
  return {std::move(planner), std::move(recommend)};
}

Player player(const CaseStudy& study, Contender contender, const VirtualCluster& cluster,
              std::uint64_t seed) {
  const Prior& prior = study.prior;
  switch (contender) {
    case Contender::kSurrogate:
      return surrogate(prior, {});
    case Contender::kAfterSweep:
      return after_sweep(study);
    case Contender::kTold:
      return surrogate(prior, told(cluster));
    case Contender::kProjectedOrder:
      return {projected_order(prior), best_measured};
    case Contender::kRandom:
      return {random_search(prior, seed), best_measured};
    case Contender::kParzen:
      return {parzen_estimator(prior, seed), best_measured};
    case Contender::kAnnealing:
      return {annealing(prior, seed), best_measured};
    case Contender::kWithExpert:
      return advised(prior, advisor(prior, cluster, {.error = 0.03}, seed));
    case Contender::kWithMediocre:
      return advised(prior, advisor(prior, cluster, {.error = 0.1, .knows_truth = false}, seed));
    case Contender::kWithAdversary:
      return advised(prior, advisor(prior, cluster, {.worst_first = true}, seed));
    case Contender::kWithFailing:
      return advised(prior, advisor(prior, cluster, {.error = 0.03, .fails_at_request = 2}, seed));
  }
  return {};
}

/// By nearest rank.
double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

using Statistic = std::function<double(const std::vector<double>&)>;

/// The 5th and 95th percentile of the statistic over samples drawn from the values (Efron 1979).
std::pair<double, double> spread(const std::vector<double>& values, const Statistic& statistic) {
  std::mt19937_64 random(1);
  std::vector<double> found;
  std::vector<double> sample(values.size());
  for (std::size_t k = 0; k < kResamples; ++k) {
    for (double& value : sample) value = values[random() % values.size()];
    found.push_back(statistic(sample));
  }
  return {quantile(found, 0.05), quantile(found, 0.95)};
}

std::string trials_text(double value, std::size_t trials) {
  return value > static_cast<double>(trials) ? fmt::format(">{}", trials) : fmt::format("{:.0f}", value);
}

std::string trials_cell(const std::vector<double>& values, double share, std::size_t trials) {
  const Statistic statistic = [share](const std::vector<double>& v) { return quantile(v, share); };
  const auto [low, high] = spread(values, statistic);
  return fmt::format("{:>3} ({}-{})", trials_text(statistic(values), trials), trials_text(low, trials),
                     trials_text(high, trials));
}

std::string row(const Standings& standings, std::size_t trials) {
  std::vector<double> first;
  std::vector<double> kept;
  std::vector<double> seen;
  double seconds = 0;
  for (const Course& course : standings.courses) {
    first.push_back(static_cast<double>(first_within(course.recommended, kWithin)));
    kept.push_back(static_cast<double>(kept_within(course.recommended, kWithin)));
    seen.push_back(static_cast<double>(first_within(course.visited, kWithin)));
    seconds += course.seconds;
  }
  std::string text = fmt::format(
      "{:16} {:>13} {:>13} {:>13} {:>13} {:>4} {:>4}", standings.name, trials_cell(first, 0.5, trials),
      trials_cell(first, 0.9, trials), trials_cell(kept, 0.5, trials), trials_cell(kept, 0.9, trials),
      trials_text(quantile(seen, 0.5), trials), trials_text(quantile(seen, 0.9), trials));
  for (const std::size_t after : {10U, 20U, 30U}) {
    if (after > trials) continue;
    std::vector<double> regret;
    for (const Course& course : standings.courses) regret.push_back(100 * course.recommended[after - 1]);
    const auto [low, high] = spread(regret, mean);
    text += fmt::format(" {:>17}", fmt::format("{:.2f} ({:.2f}-{:.2f})", mean(regret), low, high));
  }
  return text +
         fmt::format(" {:>6.0f}", 1000 * seconds / static_cast<double>(standings.courses.size() * trials));
}

}  // namespace

std::string_view word(Contender contender) {
  switch (contender) {
    case Contender::kSurrogate:
      return "surrogate";
    case Contender::kAfterSweep:
      return "sweep, surrogate";
    case Contender::kTold:
      return "told";
    case Contender::kProjectedOrder:
      return "projected order";
    case Contender::kRandom:
      return "random";
    case Contender::kParzen:
      return "TPE";
    case Contender::kAnnealing:
      return "annealing";
    case Contender::kWithExpert:
      return "with expert";
    case Contender::kWithMediocre:
      return "with mediocre";
    case Contender::kWithAdversary:
      return "with adversary";
    case Contender::kWithFailing:
      return "with failing";
  }
  return "";
}

Course play(const CaseStudy& study, Contender contender, const Match& match, std::size_t trials,
            std::string* log) {
  const Prior& prior = study.prior;
  VirtualCluster cluster(prior, match.shape, match.number, match.seed);
  const Player player = benchmarks::player(study, contender, cluster, match.seed);
  const auto regret_of = [&](const Point& point) { return 1 - cluster.truth(point) / cluster.optimum(); };
  Course course;
  History history;
  double best_visited = 1;
  if (log != nullptr) *log += fmt::format("{}, seed {}\n", cluster.description(), match.seed);
  for (std::size_t trial = 0; trial < trials; ++trial) {
    const auto begin = std::chrono::steady_clock::now();
    const search::Decision decision = player.planner->next(history, {.trials = trials});
    double regret = course.recommended.empty() ? 1 : course.recommended.back();
    if (decision.kind == search::DecisionKind::kTrial) {
      const auto result =
          cluster.run({.number = trial, .point = decision.point, .repeat = decision.repeat}, {});
      history.push_back({decision.point, decision.repeat, result});
      const auto recommended = player.recommend(history);
      regret = recommended ? regret_of(*recommended) : 1;
      best_visited = std::min(best_visited, regret_of(decision.point));
      if (log != nullptr) {
        *log += fmt::format("{:3} {:14} {:8.1f} regret {:6.2f} %  recommended {:6.2f} %  {}#{}  {}\n",
                            trial + 1, search::word(result.state), result.objective,
                            100 * regret_of(decision.point), 100 * regret,
                            search::describe(prior.space, decision.point), decision.repeat, decision.why);
      }
    }
    course.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    course.recommended.push_back(regret);
    course.visited.push_back(best_visited);
  }
  return course;
}

std::size_t first_within(const std::vector<double>& regret, double within) {
  const auto found = std::ranges::find_if(regret, [&](double r) { return r <= within; });
  return static_cast<std::size_t>(found - regret.begin()) + 1;
}

std::size_t kept_within(const std::vector<double>& regret, double within) {
  std::size_t kept = regret.size();
  while (kept > 0 && regret[kept - 1] <= within) --kept;
  return kept + 1;
}

std::string table(const std::vector<Standings>& standings, std::size_t trials) {
  std::string text = fmt::format(
      "{:16} {:^27} {:^27} {:^9}  {:^53}\n{:16} {:>13} {:>13} {:>13} {:>13} {:>4} {:>4} {:>17} {:>17} {:>17} "
      "{:>6}\n",
      "", "recommended within 1 %", "and from then on", "visited", "mean regret of the recommended, %",
      "planner", "median", "90th pct.", "median", "90th pct.", "med.", "90th", "10 trials", "20 trials",
      "30 trials", "ms");
  for (const Standings& one : standings) text += row(one, trials) + "\n";
  return text;
}

}  // namespace sextant::benchmarks
