// Every point of a space, one after another, in blocks of fixed size.
//
// A block is the unit of work and of determinism: it holds the same points on any number of threads, and its
// results are merged in block order.
#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/check.h"
#include "base/thread_pool.h"
#include "search/exhaustive.h"
#include "search/leaders.h"

namespace sextant::search {
namespace {

constexpr std::size_t kBlockPoints = 4096;

struct Tally {
  Tally(const Space& space, std::size_t keep, std::size_t rules) : leaders(keep), violated(rules, 0) {
    for (const Axis& axis : space.axes) best_by_value.emplace_back(axis.values.size(), kNothingFits);
  }
  Leaders leaders;
  ParetoFront front;
  std::vector<std::vector<double>> best_by_value;
  std::vector<std::int64_t> violated;
  double legal = 0;
  double fit = 0;
};

/// The point with number `index` in lexicographic order.
Point point_at(const Space& space, std::size_t index) {
  Point point(space.axes.size());
  for (std::size_t i = space.axes.size(); i-- > 0;) {
    const std::size_t values = space.axes[i].values.size();
    point[i] = static_cast<std::uint16_t>(index % values);
    index /= values;
  }
  return point;
}

void advance(const Space& space, Point& point) {
  for (std::size_t i = point.size(); i-- > 0;) {
    if (++point[i] < space.axes[i].values.size()) return;
    point[i] = 0;
  }
}

void score_block(const Space& space, std::size_t first, std::size_t last, Evaluator& evaluator,
                 Tally& tally) {
  Point point = point_at(space, first);
  for (std::size_t i = first; i < last; ++i, advance(space, point)) {
    if (!evaluator.count_violations(point, tally.violated)) continue;
    tally.legal += 1;
    const Outcome outcome = evaluator.evaluate(point);
    if (!outcome.fits) continue;
    tally.fit += 1;
    tally.leaders.offer(point, outcome);
    tally.front.offer(point, outcome);
    for (std::size_t axis = 0; axis < point.size(); ++axis) {
      double& best = tally.best_by_value[axis][point[axis]];
      best = std::max(best, outcome.objective);
    }
  }
}

void merge(Tally& into, const Tally& from) {
  into.leaders.merge(from.leaders);
  into.front.merge(from.front);
  for (std::size_t axis = 0; axis < into.best_by_value.size(); ++axis) {
    for (std::size_t value = 0; value < into.best_by_value[axis].size(); ++value) {
      double& best = into.best_by_value[axis][value];
      best = std::max(best, from.best_by_value[axis][value]);
    }
  }
  for (std::size_t i = 0; i < into.violated.size(); ++i) into.violated[i] += from.violated[i];
  into.legal += from.legal;
  into.fit += from.fit;
}

}  // namespace

Answer score_all(const Space& space, const EvaluatorFactory& factory, const Options& options) {
  SEXTANT_CHECK_LE(space.points(), 1e12);
  const auto points = static_cast<std::size_t>(space.points());
  const std::size_t blocks = (points + kBlockPoints - 1) / kBlockPoints;
  const std::size_t threads = std::max<std::size_t>(options.threads, 1);
  std::vector<std::unique_ptr<Evaluator>> evaluators(threads);
  // One tally a thread is enough: leaders, front and counts do not depend on the order of offers.
  std::vector<Tally> tallies(threads, Tally(space, options.keep, factory.rules()));
  std::atomic<bool> stopped{false};
  std::atomic<std::size_t> done{0};
  std::mutex progress_mutex;
  base::parallel_for(blocks, 1, threads, [&](std::size_t block, std::size_t worker) {
    if (options.stop && options.stop()) stopped = true;
    if (stopped) return;
    if (!evaluators[worker]) evaluators[worker] = factory.make();
    const std::size_t first = block * kBlockPoints;
    const std::size_t last = std::min(points, first + kBlockPoints);
    score_block(space, first, last, *evaluators[worker], tallies[worker]);
    done += last - first;
    if (!options.progress) return;
    const std::lock_guard lock(progress_mutex);
    const auto& best = tallies[worker].leaders.best();
    const double objective = best.empty() ? 0 : best.front().outcome.objective;
    options.progress({static_cast<double>(done), static_cast<double>(points), objective});
  });
  Tally total(space, options.keep, factory.rules());
  for (const Tally& tally : tallies) merge(total, tally);
  return {.best = total.leaders.best(),
          .pareto = total.front.points(),
          .best_by_value = total.best_by_value,
          .violated = total.violated,
          .points = static_cast<double>(points),
          .legal = total.legal,
          .evaluated = total.legal,
          .fit = total.fit,
          .pruned_by_bound = 0,
          .certified = !stopped};
}

}  // namespace sextant::search
