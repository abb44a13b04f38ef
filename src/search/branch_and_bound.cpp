// Branch and bound over prefixes.
//
// The problem: millions to billions of legal points, of which a few thousand matter. The idea: fix axes one
// after the other; after each, an optimistic bound says the best that any completion could reach. Prefixes of
// `branch_depth` axes are bounded first and visited best bound first, so that a near-optimal incumbent is
// found early; from then on most subtrees are left out whole. A subtree is left out only if its bound is
// *below* the K-th best, so the K best are exact. What is left out is counted (legal_completions), and the
// count of the whole space is taken apart from it: the certificate holds only if evaluated + pruned_by_bound
// = legal.
//
// Determinism: branches are handled in batches of fixed size. Inside a batch every branch starts from the
// leaders of the earlier batches and learns only from itself, so the counts are the same on any number of
// threads. Cost: batches waste a little pruning at the start; the first batches are small for that reason.
#include <algorithm>
#include <atomic>
#include <functional>

#include "base/check.h"
#include "base/thread_pool.h"
#include "search/exhaustive.h"
#include "search/leaders.h"

namespace sextant::search {
namespace {

struct Branch {
  Point prefix;
  double bound = 0;
};

struct Result {
  explicit Result(const Leaders& start) : leaders(start) {}
  Leaders leaders;
  ParetoFront front;
  double evaluated = 0;
  double fit = 0;
  double pruned = 0;
};

/// Whether somebody wants the search to end; from any thread.
class StopFlag {
 public:
  explicit StopFlag(const std::function<bool()>& asked) : asked_(asked) {}
  bool raised() {
    if (!raised_ && asked_ && asked_()) raised_ = true;
    return raised_;
  }

 private:
  const std::function<bool()>& asked_;
  std::atomic<bool> raised_{false};
};

/// Depth-first below `prefix`, which is admitted and worth entering.
class Descent {
 public:
  Descent(const Space& space, Evaluator& evaluator, Result& result, StopFlag& stop)
      : space_(space), evaluator_(evaluator), result_(result), stop_(stop) {}

  void enter(Point& prefix) {
    if (stop_.raised()) return;
    if (prefix.size() == space_.axes.size()) {
      score(prefix);
      return;
    }
    const std::vector<Child> children = bounded_children(prefix);
    prefix.push_back(0);
    for (const Child& child : children) {
      prefix.back() = child.value;
      if (result_.leaders.may_enter(prefix, child.bound)) {
        enter(prefix);
      } else if (!stop_.raised()) {
        result_.pruned += evaluator_.legal_completions(prefix);
      }
    }
    prefix.pop_back();
  }

 private:
  struct Child {
    std::uint16_t value = 0;
    double bound = 0;
  };

  /// Admitted values of the next axis, best bound first: a good incumbent early leaves out more.
  std::vector<Child> bounded_children(Point& prefix) {
    std::vector<Child> children;
    const std::size_t axis = prefix.size();
    prefix.push_back(0);
    for (std::size_t value = 0; value < space_.axes[axis].values.size(); ++value) {
      prefix[axis] = static_cast<std::uint16_t>(value);
      if (evaluator_.admits(prefix)) children.push_back({prefix[axis], evaluator_.objective_bound(prefix)});
    }
    prefix.pop_back();
    std::ranges::stable_sort(children, std::ranges::greater{}, &Child::bound);
    return children;
  }

  void score(const Point& point) {
    const Outcome outcome = evaluator_.evaluate(point);
    result_.evaluated += 1;
    if (!outcome.fits) return;
    result_.fit += 1;
    result_.leaders.offer(point, outcome);
    result_.front.offer(point, outcome);
  }

  const Space& space_;
  Evaluator& evaluator_;
  Result& result_;
  StopFlag& stop_;
};

/// All admitted prefixes of `depth` axes, in lexicographic order.
void collect(const Space& space, Evaluator& evaluator, std::size_t depth, StopFlag& stop, Point& prefix,
             std::vector<Branch>& out) {
  if (stop.raised()) return;
  if (prefix.size() == depth) {
    out.push_back({prefix, 0});
    return;
  }
  const std::size_t axis = prefix.size();
  prefix.push_back(0);
  for (std::size_t value = 0; value < space.axes[axis].values.size(); ++value) {
    prefix[axis] = static_cast<std::uint16_t>(value);
    if (evaluator.admits(prefix)) collect(space, evaluator, depth, stop, prefix, out);
  }
  prefix.pop_back();
}

}  // namespace

Answer branch_and_bound(const Space& space, const EvaluatorFactory& factory, const Options& options) {
  const std::size_t depth = std::min(options.branch_depth, space.axes.size());
  const std::size_t threads = std::max<std::size_t>(options.threads, 1);
  std::vector<std::unique_ptr<Evaluator>> evaluators(threads);
  for (auto& evaluator : evaluators) evaluator = factory.make();

  StopFlag stop(options.stop);
  std::vector<Branch> branches;
  Point root;
  collect(space, *evaluators[0], depth, stop, root, branches);
  base::parallel_for(branches.size(), 64, threads, [&](std::size_t i, std::size_t worker) {
    if (stop.raised()) return;
    branches[i].bound = evaluators[worker]->objective_bound(branches[i].prefix);
  });
  std::ranges::stable_sort(branches, std::ranges::greater{}, &Branch::bound);

  Answer answer;
  answer.points = space.points();
  Leaders leaders(options.keep);
  ParetoFront front;
  std::size_t batch = 1;
  for (std::size_t first = 0; first < branches.size() && !stop.raised();
       first += batch, batch = std::min<std::size_t>(2 * batch, 64)) {
    const std::size_t count = std::min(batch, branches.size() - first);
    std::vector<Result> results(count, Result(leaders));
    base::parallel_for(count, 1, threads, [&](std::size_t i, std::size_t worker) {
      Branch& branch = branches[first + i];
      Evaluator& evaluator = *evaluators[worker];
      if (!results[i].leaders.may_enter(branch.prefix, branch.bound)) {
        if (!stop.raised()) results[i].pruned += evaluator.legal_completions(branch.prefix);
        return;
      }
      Point prefix = branch.prefix;
      Descent(space, evaluator, results[i], stop).enter(prefix);
    });
    for (const Result& result : results) {
      leaders.merge(result.leaders);
      front.merge(result.front);
      answer.evaluated += result.evaluated;
      answer.fit += result.fit;
      answer.pruned_by_bound += result.pruned;
    }
    if (options.progress) {
      const double objective = leaders.best().empty() ? 0 : leaders.best().front().outcome.objective;
      options.progress({static_cast<double>(first + count), static_cast<double>(branches.size()), objective});
    }
  }
  answer.best = leaders.best();
  answer.pareto = front.points();
  const bool stopped = stop.raised();
  answer.legal = stopped ? answer.evaluated + answer.pruned_by_bound : evaluators[0]->legal_completions({});
  answer.certified = !stopped && answer.evaluated + answer.pruned_by_bound == answer.legal;
  return answer;
}

}  // namespace sextant::search
