#include "search/surrogate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "search/normal.h"

namespace sextant::search {
namespace {
enum class Seen : char { kNo, kOk, kBad };
}  // namespace

struct Surrogate::State {
  History history;
  bool fresh = true;
  std::vector<Hypothesis> hypotheses;
  std::vector<CorrectionPosterior> posteriors;
  Eigen::VectorXd log_projected;
  Eigen::VectorXd runs;
  std::vector<Seen> seen;
  std::vector<std::size_t> places;
  Eigen::VectorXd mean;
};

Surrogate::~Surrogate() = default;
Surrogate::Surrogate(const Prior& prior, SurrogateOptions options)
    : prior_(prior), options_(std::move(options)), model_(prior, options_.correction), state_(new State) {
  state_->log_projected.resize(static_cast<Eigen::Index>(prior.legal.size()));
  for (std::size_t i = 0; i < prior.legal.size(); ++i)
    state_->log_projected[static_cast<Eigen::Index>(i)] = std::log(prior.legal[i].objective);
}

void Surrogate::update(const History& history) {
  State& s = *state_;
  if (!s.fresh && s.history.size() == history.size()) return;
  s.fresh = false;
  s.history = history;
  const std::size_t c = prior_.legal.size();
  std::vector<Correction> observed;
  s.seen.assign(c, Seen::kNo);
  for (const Trial& t : history) {
    const auto index = prior_.find(t.point);
    if (!index || !speaks_of_point(t.result.state)) continue;
    if (t.result.state == TrialState::kOk) {
      observed.push_back({*index, std::log(t.result.objective / prior_.legal[*index].objective)});
      if (s.seen[*index] == Seen::kNo) s.seen[*index] = Seen::kOk;
    } else {
      s.seen[*index] = Seen::kBad;
    }
  }
  s.hypotheses = model_.weigh(observed);
  s.runs = probability_of_fitting(prior_, memory_posterior(prior_, model_.points(), history, options_.memory));
  const FailureModel failures(prior_.space, history, options_.failures);
  for (std::size_t i = 0; i < c; ++i) s.runs[static_cast<Eigen::Index>(i)] *= failures.works(prior_.legal[i].point);
  // Shortlist.
  std::vector<std::size_t> all(c);
  for (std::size_t i = 0; i < c; ++i) all[i] = i;
  Hypothesis null = s.hypotheses.front();
  for (const Hypothesis& h : s.hypotheses)
    if (h.structure.empty()) null = h;
  null.structure.clear();
  const CorrectionPosterior base = model_.predict(observed, std::span(&null, 1), all).front();
  Eigen::VectorXd score = (s.log_projected + base.mean + base.deviation).array().exp();
  score = score.cwiseProduct(s.runs);
  std::vector<std::size_t> order = all;
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) { return score[static_cast<Eigen::Index>(i)]; });
  std::vector<bool> in(c, false);
  const auto& turned = model_.axes();
  for (std::size_t i = 0; i < c; ++i) in[i] = s.seen[i] == Seen::kOk;
  for (std::size_t a = 0; a < turned.size(); ++a)
    for (std::size_t b = a + 1; b < turned.size(); ++b) {
      const std::size_t width = prior_.space.axes[turned[b]].values.size();
      std::vector<std::size_t> taken(prior_.space.axes[turned[a]].values.size() * width, 0);
      for (const std::size_t i : order) {
        if (s.seen[i] != Seen::kNo) continue;
        const Point& p = prior_.legal[i].point;
        std::size_t& t = taken[p[turned[a]] * width + p[turned[b]]];
        if (t < options_.per_cell) {
          ++t;
          in[i] = true;
        }
      }
    }
  s.places.clear();
  for (std::size_t i = 0; i < c; ++i)
    if (in[i]) s.places.push_back(i);
  s.posteriors = model_.predict(observed, s.hypotheses, s.places);
  Eigen::VectorXd log_projected(static_cast<Eigen::Index>(s.places.size()));
  for (std::size_t i = 0; i < s.places.size(); ++i)
    log_projected[static_cast<Eigen::Index>(i)] = s.log_projected[static_cast<Eigen::Index>(s.places[i])];
  s.mean = Eigen::VectorXd::Zero(log_projected.size());
  for (CorrectionPosterior& p : s.posteriors) {
    p.mean += log_projected;
    s.mean += p.hypothesis.weight * p.mean;
  }
}

std::string Surrogate::explain() const {
  std::string text = fmt::format("{} places, {} hypotheses:", state_->places.size(), state_->hypotheses.size());
  for (std::size_t i = 0; i < std::min<std::size_t>(3, state_->hypotheses.size()); ++i) {
    const Hypothesis& h = state_->hypotheses[i];
    text += fmt::format(" [{:.2f}", h.weight);
    for (const AxisPair& p : h.structure) text += fmt::format(" {}x{}", prior_.space.axes[p.a].name, prior_.space.axes[p.b].name);
    text += fmt::format(" m{} w{} n{} l{} s{}]", h.scales.main, h.scales.weak, h.scales.noise, h.scales.length, h.scales.strong);
  }
  return text;
}

Decision Surrogate::next(const History& history, const TrialBudget& budget) {
  update(history);
  State& s = *state_;
  const auto c = static_cast<Eigen::Index>(s.places.size());
  Eigen::VectorXd gain = Eigen::VectorXd::Zero(c);
  const auto seen = [&](Eigen::Index i) { return s.seen[s.places[static_cast<std::size_t>(i)]]; };
  const auto runs = [&](Eigen::Index i) { return s.runs[static_cast<Eigen::Index>(s.places[static_cast<std::size_t>(i)])]; };
  bool squared = false;
  if (options_.mode == 1) squared = 2 * history.size() < budget.trials;
  if (options_.mode == 2) squared = history.size() % 2 == 1;
  if (options_.mode == 3) squared = true;
  // Cells not visited.
  Eigen::VectorXd surprise = Eigen::VectorXd::Zero(c);
  const auto& turned = model_.axes();
  for (std::size_t a = 0; a < turned.size(); ++a)
    for (std::size_t b = a + 1; b < turned.size(); ++b) {
      const std::size_t width = prior_.space.axes[turned[b]].values.size();
      std::vector<bool> visited(prior_.space.axes[turned[a]].values.size() * width, false);
      for (std::size_t i = 0; i < prior_.legal.size(); ++i)
        if (s.seen[i] == Seen::kOk) visited[prior_.legal[i].point[turned[a]] * width + prior_.legal[i].point[turned[b]]] = true;
      for (Eigen::Index i = 0; i < c; ++i) {
        const Point& p = prior_.legal[s.places[static_cast<std::size_t>(i)]].point;
        if (!visited[p[turned[a]] * width + p[turned[b]]]) surprise[i] += 1;
      }
    }
  for (Eigen::Index i = 0; i < c; ++i) surprise[i] = 1 - std::pow(1 - options_.surprise, surprise[i]);
  for (const CorrectionPosterior& p : s.posteriors) {
    double first = -1e300;
    double second = -1e300;
    for (Eigen::Index i = 0; i < c; ++i) {
      if (seen(i) != Seen::kOk) continue;
      const double m = p.mean[i];
      if (m > first) {
        second = first;
        first = m;
      } else if (m > second) {
        second = m;
      }
    }
    const bool none = first == -1e300;
    const double noise = p.hypothesis.scales.noise;
    for (Eigen::Index i = 0; i < c; ++i) {
      if (seen(i) == Seen::kBad) continue;
      const double m = p.mean[i];
      const double v = p.deviation[i] * p.deviation[i];
      const double change = v / std::sqrt(v + noise * noise);
      double g = 0;
      if (none) {
        g = std::exp(m);
      } else {
        double d = m - first;
        if (seen(i) == Seen::kOk) {
          const double rival = m == first ? second : first;
          if (rival == -1e300) continue;
          d = -std::abs(m - rival);
        }
        g = squared ? expected_squared_gain(d, change) : expected_gain(d, change);
        if (surprise[i] > 0) {
          const double wide = std::hypot(change, options_.surprise_size);
          g += surprise[i] * ((squared ? expected_squared_gain(d, wide) : expected_gain(d, wide)) - g);
        }
      }
      gain[i] += p.hypothesis.weight * g;
    }
  }
  Eigen::Index best = -1;
  double value = -1;
  for (Eigen::Index i = 0; i < c; ++i) {
    if (seen(i) == Seen::kBad) continue;
    const double a = gain[i] * runs(i);
    if (a > value) {
      value = a;
      best = i;
    }
  }
  Decision d;
  d.planner = "surrogate";
  if (best < 0) {
    d.kind = DecisionKind::kStop;
    d.why = "every legal point was tried";
    return d;
  }
  d.point = prior_.legal[s.places[static_cast<std::size_t>(best)]].point;
  d.repeat = next_repeat(history, d.point);
  d.predicted.gain = squared ? std::sqrt(value) : value;
  d.predicted.probability_runs = runs(best);
  d.predicted.objective = std::exp(s.mean[best]);
  return d;
}

std::optional<Recommendation> Surrogate::recommend(const History& history, bool visited_only) {
  update(history);
  State& s = *state_;
  std::optional<Recommendation> r;
  double top = -1e300;
  for (std::size_t j = 0; j < s.places.size(); ++j) {
    const std::size_t i = s.places[j];
    if (s.seen[i] == Seen::kBad) continue;
    if (s.seen[i] == Seen::kNo && (visited_only || s.runs[static_cast<Eigen::Index>(i)] < 0.8)) continue;
    if (s.mean[static_cast<Eigen::Index>(j)] > top) {
      top = s.mean[static_cast<Eigen::Index>(j)];
      r = {.point = prior_.legal[i].point, .objective = std::exp(top), .visited = s.seen[i] == Seen::kOk};
    }
  }
  return r;
}

}  // namespace sextant::search
