#include "case_study.h"

#include <utility>

#include "backends/workload.h"
#include "cluster/cluster.h"
#include "config/document.h"
#include "trials/layout_space.h"
#include "trials/projection_evaluator.h"

namespace sextant::benchmarks {
namespace {

/// The next point of the space; false after the last.
bool next_point(const search::Space& space, search::Point& point) {
  for (std::size_t axis = point.size(); axis-- > 0;) {
    if (++point[axis] < space.axes[axis].values.size()) return true;
    point[axis] = 0;
  }
  return false;
}

}  // namespace

CaseStudy case_study(const std::string& folder) {
  backends::ReadOptions options;
  options.cluster = cluster::load_cluster("mi355x:8x8", {});
  options.settings = {config::parse_assignment("gbs=512")};
  const backends::Workload workload =
      backends::read_workload(folder + "/data/examples/mixtral_8x22b_mi355x.yaml", options);
  CaseStudy result;
  result.prior.space = trials::layout_space(workload.job, {});
  result.prior.limit_bytes = workload.job.cluster->memory_limit_bytes();
  result.card_bytes = workload.job.cluster->accelerator.memory_bytes;
  result.own = trials::own_point(result.prior.space, workload.job);
  const auto factory = trials::projection_evaluators(result.prior.space, workload.job, false);
  const auto evaluator = factory->make();
  std::vector<std::int64_t> counts(factory->rules());
  search::Point point(result.prior.space.axes.size(), 0);
  do {
    if (!evaluator->count_violations(point, counts)) continue;
    const search::Outcome outcome = evaluator->evaluate(point);
    result.prior.legal.push_back({point, outcome.objective, outcome.peak_bytes});
  } while (next_point(result.prior.space, point));
  search::check_prior(result.prior);
  return result;
}

}  // namespace sextant::benchmarks
