#include "calibration/problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "calibration/validate.h"
#include "config/embedded_data.h"
#include "training/projection.h"

namespace sextant::calibration {
namespace {

/// Step time that the printed metric means.
double measured_step_s(const MeasuredRow& row, const RowJob& made) {
  const TimeError e = time_error(row, made,
                                 cost::efficiency_for(made.job.software.framework, made.job.software.version,
                                                      made.job.cluster->accelerator));
  // Projected and measured are in one metric; the projected step is known.
  training::Projector projector(made.job);
  const double step = made.flushes * projector.score(made.job.layout).step_s;
  return step / (1.0 + e.error());
}

Unknown unknown_of(const FittedParameter& p) {
  const double mean = std::log(p.prior);
  double low = mean - 4 * p.width, high = mean + 4 * p.width;
  const std::string_view name = p.name;
  if (name.starts_with("gemm_fraction.")) high = std::min(high, 0.0);
  for (const cost::EfficiencyParameter& known : cost::efficiency_parameters()) {
    if (known.name != name) continue;
    if (known.low > 0) low = std::max(low, std::log(known.low));
    high = std::min(high, std::log(known.high));
  }
  return {.mean = std::min(mean, high), .width = p.width, .low = low, .high = high};
}

}  // namespace

std::vector<FitRow> fit_rows(std::span<const MeasuredRow> rows, const cluster::Cluster* cluster) {
  std::vector<FitRow> result;
  for (const MeasuredRow& row : rows) {
    if (!has_time(row)) continue;
    auto made = row_job(row, cluster);
    auto* job = std::get_if<RowJob>(&made);
    if (job == nullptr || job->functional_test || has_assumed_batch(*job)) continue;
    FitRow fit;
    fit.id = row.id;
    fit.measured_s = measured_step_s(row, *job);
    fit.framework = base::lower_case(job->job.software.framework);
    fit.version = cost::version_key(job->job.software.version);
    fit.family = base::lower_case(job->job.cluster->accelerator.family);
    fit.accelerator = base::lower_case(job->job.cluster->accelerator.name);
    fit.group = row.slice() + "|" + row.model + "|" + fit.accelerator;
    fit.job = std::move(*job);
    result.push_back(std::move(fit));
  }
  return result;
}

std::vector<FittedParameter> read_priors() {
  const config::Node file = config::data_document("calibration/priors.yaml");
  std::vector<FittedParameter> result;
  for (const auto& [block, entries] : config::require_mapping(config::require(file, "parameters")).entries) {
    for (const auto& [name, node] : config::require_mapping(entries).entries) {
      config::refuse_unknown_keys(config::require_mapping(node), {"prior", "width", "also"});
      FittedParameter p{.block = block, .name = name};
      p.value = p.prior = config::as_number(config::require(node, "prior"));
      p.width = config::as_number(config::require(node, "width"));
      if (!(p.prior > 0 && p.width > 0)) {
        throw base::UserError(node.position, node.path,
                              "prior and width must be positive: logarithms are fitted");
      }
      if (const config::Node* also = node.find_set("also")) {
        for (const config::Node& key : config::require_sequence(*also).items)
          p.also.push_back(config::as_text(key));
      }
      result.push_back(std::move(p));
    }
  }
  return result;
}

bool reaches(const std::string& block, const FitRow& row) {
  if (block == "defaults") return true;
  if (block.starts_with("families.")) return block == "families." + row.family;
  if (block.starts_with("accelerators.")) return block == "accelerators." + row.accelerator;
  const std::string framework = "frameworks." + row.framework;
  return block == framework || block == framework + ".families." + row.family ||
         (!row.version.empty() && block == framework + ".versions." + row.version);
}

Problem::Problem(std::vector<FitRow> rows, std::vector<FittedParameter> parameters)
    : rows_(std::move(rows)), parameters_(std::move(parameters)) {}

EfficiencyTable Problem::table(const std::vector<double>& x) const {
  EfficiencyTable t;
  for (std::size_t j = 0; j < parameters_.size(); ++j) {
    const FittedParameter& p = parameters_[j];
    t.set(p.block, p.name, std::exp(x[j]));
    for (const std::string& key : p.also) t.set(p.block, key, std::exp(x[j]));
  }
  return t;
}

std::vector<double> Problem::residuals(const std::vector<double>& x,
                                       const std::vector<std::size_t>& indices) const {
  const EfficiencyTable t = table(x);
  using Key = std::array<std::string, 3>;
  std::map<Key, cost::Efficiency> efficiencies;
  for (const std::size_t i : indices) {
    const Key key = {rows_[i].framework, rows_[i].version, rows_[i].accelerator};
    if (!efficiencies.contains(key)) {
      efficiencies[key] = t.of(rows_[i].framework, rows_[i].version, rows_[i].job.job.cluster->accelerator);
    }
  }
  std::vector<double> result(indices.size());
  base::parallel_for(indices.size(), 4, base::default_threads(), [&](std::size_t k, std::size_t) {
    const FitRow& row = rows_[indices[k]];
    training::Projector projector(row.job.job,
                                  efficiencies.at({row.framework, row.version, row.accelerator}));
    const double step = row.job.flushes * projector.score(row.job.job.layout).step_s;
    result[k] = std::log(step / row.measured_s);
  });
  return result;
}

LeastSquaresResult Problem::fit(const std::vector<std::size_t>& chosen) const {
  std::vector<Unknown> unknowns;
  ResidualModel model;
  model.count = chosen.size();
  model.evaluate = [&](const std::vector<double>& x, const std::vector<std::size_t>& indices) {
    std::vector<std::size_t> mapped;
    for (const std::size_t i : indices) mapped.push_back(chosen[i]);
    return residuals(x, mapped);
  };
  for (const FittedParameter& p : parameters_) {
    unknowns.push_back(unknown_of(p));
    std::vector<std::size_t> reached;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (reaches(p.block, rows_[chosen[i]])) reached.push_back(i);
    }
    model.depends.push_back(std::move(reached));
  }
  return fit_least_squares(unknowns, model, {});
}

}  // namespace sextant::calibration
