#include "tuner/measured_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <utility>

#include "backends/rules.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "trials/layout_space.h"
#include "trials/projection_evaluator.h"
#include "tuner/past_runs.h"
#include "tuner/tune_document.h"

namespace sextant::tuner {
namespace {

/// Above this many combinations the tree is bounded instead of scored point by point.
constexpr double kScoreAllPoints = 3e6;
/// So many axes are turned at once for the neighbourhood of the workload's own layout.
constexpr int kNeighbourAxes = 2;

using Found = std::vector<search::Candidate>;

/// An evaluator that remembers what it was asked: `score_all` evaluates each legal point once.
class Remembering : public search::Evaluator {
 public:
  Remembering(std::unique_ptr<search::Evaluator> inner, Found& found, bool only_fitting)
      : inner_(std::move(inner)), found_(found), only_fitting_(only_fitting) {}

  bool admits(const search::Point& prefix) override { return inner_->admits(prefix); }
  double legal_completions(const search::Point& prefix) override { return inner_->legal_completions(prefix); }
  double objective_bound(const search::Point& prefix) override { return inner_->objective_bound(prefix); }
  bool count_violations(const search::Point& point, std::span<std::int64_t> counts) override {
    return inner_->count_violations(point, counts);
  }
  search::Outcome evaluate(const search::Point& point) override {
    const search::Outcome outcome = inner_->evaluate(point);
    if (outcome.fits || !only_fitting_) found_.push_back({point, outcome.objective, outcome.peak_bytes});
    return outcome;
  }

 private:
  std::unique_ptr<search::Evaluator> inner_;
  Found& found_;
  bool only_fitting_;
};

class RememberingEvaluators : public search::EvaluatorFactory {
 public:
  RememberingEvaluators(const search::EvaluatorFactory& inner, bool only_fitting)
      : inner_(inner), only_fitting_(only_fitting) {}

  std::unique_ptr<search::Evaluator> make() const override {
    const std::lock_guard lock(mutex_);
    found_.push_back(std::make_unique<Found>());
    return std::make_unique<Remembering>(inner_.make(), *found_.back(), only_fitting_);
  }
  std::size_t rules() const override { return inner_.rules(); }

  Found take() const {
    Found all;
    for (const auto& found : found_) all.insert(all.end(), found->begin(), found->end());
    return all;
  }

 private:
  const search::EvaluatorFactory& inner_;
  bool only_fitting_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Found>> found_;
};

bool measures(const TuneFlags& flags) { return flags.evaluator == "command" || flags.evaluator == "slurm"; }

/// In the order that search::Prior wants, each point once.
void put_in_order(Found& found) {
  std::ranges::sort(found, search::comes_before, &search::Candidate::point);
  const auto repeated = std::ranges::unique(found, {}, &search::Candidate::point);
  found.erase(repeated.begin(), repeated.end());
}

/// Calls `visit` with `point` changed on `axes` axes at most, from `first` on.
template <typename Visit>
void for_each_neighbour(const search::Space& space, search::Point& point, std::size_t first, int axes,
                        const Visit& visit) {
  visit(point);
  if (axes == 0) return;
  for (std::size_t axis = first; axis < point.size(); ++axis) {
    const std::uint16_t own = point[axis];
    for (std::size_t value = 0; value < space.axes[axis].values.size(); ++value) {
      if (value == own) continue;
      point[axis] = static_cast<std::uint16_t>(value);
      for_each_neighbour(space, point, axis + 1, axes - 1, visit);
    }
    point[axis] = own;
  }
}

/// Legal, fitting points that differ from `centre` on few axes.
Found neighbourhood(const MeasuredSetup& setup, search::Point centre) {
  Found found;
  const auto evaluator = setup.factory->make();
  std::vector<std::int64_t> counts(setup.factory->rules());
  for_each_neighbour(setup.space, centre, 0, kNeighbourAxes, [&](const search::Point& point) {
    if (!evaluator->count_violations(point, counts)) return;
    const search::Outcome outcome = evaluator->evaluate(point);
    if (outcome.fits) found.push_back({point, outcome.objective, outcome.peak_bytes});
  });
  return found;
}

/// The best by projection; of equals the earlier point.
void keep_best(Found& found, std::size_t count) {
  if (found.size() <= count) return;
  std::ranges::nth_element(found, found.begin() + static_cast<std::ptrdiff_t>(count),
                           [](const search::Candidate& a, const search::Candidate& b) {
                             if (a.objective != b.objective) return a.objective > b.objective;
                             return search::comes_before(a.point, b.point);
                           });
  found.resize(count);
}

void add_neighbourhood(const MeasuredSetup& setup, Found& found) {
  if (!setup.own) return;
  const Found near = neighbourhood(setup, *setup.own);
  found.insert(found.end(), near.begin(), near.end());
}

Found project_all(MeasuredSetup& setup) {
  search::Options options;
  options.keep = setup.flags.top;
  options.threads = setup.flags.threads > 0 ? setup.flags.threads : base::default_threads();
  Found found;
  bool all = true;
  if (setup.space.points() <= kScoreAllPoints) {
    const RememberingEvaluators remembering(*setup.factory, measures(setup.flags));
    setup.answer = search::score_all(setup.space, remembering, options);
    found = remembering.take();
    if (found.size() > kMostCandidates) {
      all = false;
      keep_best(found, kMostCandidates);
      add_neighbourhood(setup, found);
    }
  } else {
    options.keep = std::max(options.keep, kMostCandidates);
    options.branch_depth = std::min<std::size_t>(7, setup.space.axes.size());
    setup.answer = search::branch_and_bound(setup.space, *setup.factory, options);
    for (const search::Scored& scored : setup.answer.best)
      found.push_back({scored.point, scored.outcome.objective, scored.outcome.peak_bytes});
    if (found.size() == options.keep) {
      all = false;
      add_neighbourhood(setup, found);
    }
    setup.answer.best.resize(std::min(setup.answer.best.size(), setup.flags.top));
  }
  put_in_order(found);
  if (!all) {
    setup.notes.push_back(fmt::format(
        "the space has more legal layouts than are weighed one by one: candidates are the {} fastest by "
        "projection and those that differ from the workload's own layout in at most {} knobs, {} in all",
        kMostCandidates, kNeighbourAxes, found.size()));
  }
  return found;
}

/// Why a point is no candidate, one sentence a rule.
std::vector<std::string> reasons_against(const MeasuredSetup& setup, const search::Point& point) {
  std::vector<std::string> reasons;
  trials::PointApplier applier(setup.space, setup.base());
  const training::Job job = applier.apply(point);
  for (const backends::Violation& violation :
       backends::check(job, setup.flags.space.hypothetical ? "schedule-launchable" : "")) {
    if (violation.grade == backends::Grade::kIllegal)
      reasons.push_back(fmt::format("{}: {}", violation.rule, violation.message));
  }
  if (!reasons.empty()) return reasons;
  const auto evaluator = setup.factory->make();
  std::vector<std::int64_t> counts(setup.factory->rules());
  if (!evaluator->count_violations(point, counts)) {
    reasons.emplace_back("duplicate: the framework runs another point of the space in its place");
    return reasons;
  }
  const search::Outcome outcome = evaluator->evaluate(point);
  if (!outcome.fits) {
    reasons.push_back(fmt::format("memory: projected to need {:.1f} GiB of {:.1f} GiB",
                                  outcome.peak_bytes / base::kGiB, setup.prior.limit_bytes / base::kGiB));
  }
  return reasons;
}

}  // namespace

training::Job MeasuredSetup::job(const search::Point& point) const {
  trials::PointApplier applier(space, base());
  training::Job job = applier.apply(point);
  backends::normalise(job);
  return job;
}

std::unique_ptr<MeasuredSetup> measured_setup(const TuneFlags& flags) {
  auto setup = std::make_unique<MeasuredSetup>();
  setup->flags = flags;
  setup->workload = read_inputs(flags.inputs);
  setup->past_runs = flags.llm.past_runs;
  if (setup->past_runs.empty() && !flags.llm.learn_from.empty())
    setup->past_runs = past_runs(flags.llm.learn_from);
  const auto margin =
      measures(flags) ? std::optional(flags.memory_margin.value_or(0.0)) : flags.memory_margin;
  setup->workload.job = with_margin(std::move(setup->workload.job), margin);
  setup->space = trials::layout_space(setup->base(), flags.space, &setup->notes);
  setup->own = trials::own_point(setup->space, setup->base());
  setup->factory = trials::projection_evaluators(setup->space, setup->base(), flags.space.hypothetical);
  setup->prior.space = setup->space;
  setup->prior.limit_bytes = setup->base().cluster->memory_limit_bytes();
  setup->prior.legal = project_all(*setup);
  setup->prior.violated = [raw = setup.get()](const search::Point& point) {
    return reasons_against(*raw, point);
  };
  return setup;
}

std::string prior_summary(const MeasuredSetup& setup) {
  double objectives = 0;
  double peaks = 0;
  for (const search::Candidate& candidate : setup.prior.legal) {
    objectives += std::log(candidate.objective);
    peaks += candidate.peak_bytes;
  }
  return fmt::format(
      "space {}\npoints {}\nlegal {}\ncandidates {}\nlimit_bytes {}\nsum of logarithms of objectives {}\nsum "
      "of peak bytes {}\n",
      setup.space.name, setup.answer.points, setup.answer.legal, setup.prior.legal.size(),
      setup.prior.limit_bytes, objectives, peaks);
}

}  // namespace sextant::tuner
