#include "calibration/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "calibration/efficiency_text.h"
#include "calibration/least_squares.h"
#include "calibration/validate.h"
#include "config/embedded_data.h"
#include "training/projection.h"

namespace sextant::calibration {
namespace {

/// A row reduced to what a fit needs.
struct FitRow {
  RowJob job;
  double measured_s = 0;
  std::string group;  ///< publisher × model × accelerator
  std::string framework, family, accelerator;
};

/// Step time that the printed metric means.
double measured_step_s(const MeasuredRow& row, const RowJob& made) {
  const TimeError e =
      time_error(row, made, cost::efficiency_for(made.job.software.framework, made.job.cluster->accelerator));
  // Projected and measured are in one metric; the projected step is known.
  training::Projector projector(made.job);
  const double step = made.flushes * projector.score(made.job.layout).step_s;
  return step / (1.0 + e.error());
}

std::vector<FitRow> fit_rows(std::span<const MeasuredRow> rows, const cluster::Cluster* cluster) {
  std::vector<FitRow> result;
  for (const MeasuredRow& row : rows) {
    if (!has_time(row)) continue;
    auto made = row_job(row, cluster);
    auto* job = std::get_if<RowJob>(&made);
    if (job == nullptr || job->functional_test) continue;
    FitRow fit;
    fit.measured_s = measured_step_s(row, *job);
    fit.framework = base::lower_case(job->job.software.framework);
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

/// Whether a parameter of `block` can change the efficiency of `row`.
bool reaches(const std::string& block, const FitRow& row) {
  if (block == "defaults") return true;
  if (block.starts_with("families.")) return block == "families." + row.family;
  if (block.starts_with("accelerators.")) return block == "accelerators." + row.accelerator;
  const std::string framework = "frameworks." + row.framework;
  return block == framework || block == framework + ".families." + row.family;
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

class Problem {
 public:
  Problem(std::vector<FitRow> rows, std::vector<FittedParameter> parameters)
      : rows_(std::move(rows)), parameters_(std::move(parameters)) {}

  const std::vector<FitRow>& rows() const { return rows_; }
  const std::vector<FittedParameter>& parameters() const { return parameters_; }

  EfficiencyTable table(const std::vector<double>& x) const {
    EfficiencyTable t;
    for (std::size_t j = 0; j < parameters_.size(); ++j) {
      const FittedParameter& p = parameters_[j];
      t.set(p.block, p.name, std::exp(x[j]));
      for (const std::string& key : p.also) t.set(p.block, key, std::exp(x[j]));
    }
    return t;
  }

  /// ln(projected/measured) of some rows.
  std::vector<double> residuals(const std::vector<double>& x, const std::vector<std::size_t>& indices) const {
    const EfficiencyTable t = table(x);
    std::map<std::pair<std::string, std::string>, cost::Efficiency> efficiencies;
    for (const std::size_t i : indices) {
      const auto key = std::pair(rows_[i].framework, rows_[i].accelerator);
      if (!efficiencies.contains(key)) {
        efficiencies[key] = t.of(rows_[i].framework, rows_[i].job.job.cluster->accelerator);
      }
    }
    std::vector<double> result(indices.size());
    base::parallel_for(indices.size(), 4, base::default_threads(), [&](std::size_t k, std::size_t) {
      const FitRow& row = rows_[indices[k]];
      training::Projector projector(row.job.job, efficiencies.at({row.framework, row.accelerator}));
      const double step = row.job.flushes * projector.score(row.job.job.layout).step_s;
      result[k] = std::log(step / row.measured_s);
    });
    return result;
  }

  /// Fits on the rows of `chosen`.
  LeastSquaresResult fit(const std::vector<std::size_t>& chosen) const {
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

 private:
  std::vector<FitRow> rows_;
  std::vector<FittedParameter> parameters_;
};

double mean_size(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += std::abs(v);
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

std::vector<std::size_t> all_indices(std::size_t count) {
  std::vector<std::size_t> indices(count);
  for (std::size_t i = 0; i < count; ++i) indices[i] = i;
  return indices;
}

/// Residuals of every row under a fit that left its group out. Groups are dealt to folds in order of first
/// appearance.
std::vector<double> crossed_residuals(const Problem& problem, const CalibrateOptions& options) {
  std::map<std::string, int> fold_of;
  int next = 0;
  for (const FitRow& row : problem.rows()) {
    if (fold_of.emplace(row.group, next % options.folds).second) ++next;
  }
  std::vector<double> crossed(problem.rows().size());
  for (int fold = 0; fold < options.folds; ++fold) {
    std::vector<std::size_t> kept, left;
    for (std::size_t i = 0; i < crossed.size(); ++i) {
      (fold_of.at(problem.rows()[i].group) == fold ? left : kept).push_back(i);
    }
    const LeastSquaresResult fit = problem.fit(kept);
    const std::vector<double> r = problem.residuals(fit.x, left);
    for (std::size_t k = 0; k < left.size(); ++k) crossed[left[k]] = r[k];
    if (options.progress)
      options.progress(fmt::format("fold {} of {}: {:.1f} %", fold + 1, options.folds, 100 * mean_size(r)));
  }
  return crossed;
}

double percentile90(std::vector<double> sizes) {
  std::ranges::sort(sizes);
  return sizes[std::min(sizes.size() - 1, static_cast<std::size_t>(0.9 * static_cast<double>(sizes.size())))];
}

/// Intervals of frameworks from their left-out rows; a handful of rows says nothing.
std::map<std::string, double> intervals(const Problem& problem, const std::vector<double>& crossed) {
  constexpr std::size_t kFewRows = 8;
  std::map<std::string, std::vector<double>> sizes;
  for (std::size_t i = 0; i < crossed.size(); ++i)
    sizes[problem.rows()[i].framework].push_back(std::abs(crossed[i]));
  std::map<std::string, double> widths;
  for (const auto& [name, values] : sizes) {
    if (values.size() >= kFewRows) widths[name] = percentile90(values);
  }
  return widths;
}

/// "85 rows of DGXC, NEMO2407" for the rows that a block's parameters move.
std::string data_of(const std::string& block, const std::vector<FitRow>& rows) {
  std::vector<std::string> slices;
  std::size_t count = 0;
  for (const FitRow& row : rows) {
    if (!reaches(block, row)) continue;
    ++count;
    const std::string slice = row.group.substr(0, row.group.find('|'));
    if (std::ranges::find(slices, slice) == slices.end()) slices.push_back(slice);
  }
  return fmt::format("{} rows of {}", count, base::join(slices, ", "));
}

}  // namespace

Calibration calibrate(std::span<const MeasuredRow> rows, const CalibrateOptions& options) {
  const Problem problem(fit_rows(rows, options.cluster), read_priors());
  const std::vector<std::size_t> all = all_indices(problem.rows().size());
  if (all.empty()) throw base::UserError("no row of the table has a time and a job: there is nothing to fit");
  const LeastSquaresResult fit = problem.fit(all);

  Calibration result;
  result.rows = all.size();
  result.table = problem.table(fit.x);
  result.parameters = problem.parameters();
  std::vector<double> prior;
  for (std::size_t j = 0; j < fit.x.size(); ++j) {
    result.parameters[j].value = std::exp(fit.x[j]);
    result.parameters[j].deviation = fit.deviation[j];
    result.parameters[j].rows = data_of(result.parameters[j].block, problem.rows());
    prior.push_back(std::log(result.parameters[j].prior));
  }
  result.mean_abs_log_before = mean_size(problem.residuals(prior, all));
  result.mean_abs_log_after = mean_size(problem.residuals(fit.x, all));
  if (options.progress) {
    options.progress(fmt::format("{} rows: mean |ln| {:.1f} % at the priors, {:.1f} % fitted", result.rows,
                                 100 * result.mean_abs_log_before, 100 * result.mean_abs_log_after));
  }
  if (options.folds >= 2) {
    const std::vector<double> crossed = crossed_residuals(problem, options);
    result.mean_abs_log_crossed = mean_size(crossed);
    result.interval_log_width = intervals(problem, crossed);
  }
  return result;
}

std::string calibrated_text(const std::string& text, const Calibration& calibration,
                            const std::string& table_name) {
  EfficiencyText edited(text);
  std::map<std::string, std::string> said;
  for (const FittedParameter& p : calibration.parameters) {
    edited.set(p.block, p.name, p.value);
    for (const std::string& key : p.also) edited.set(p.block, key, p.value);
    std::string& sentence = said[p.block];
    if (sentence.empty()) sentence = fmt::format("on {} ({}), priors in priors.yaml:", p.rows, table_name);
    sentence += fmt::format(" {} ±{:.0f}%,", p.name, 100 * p.deviation);
  }
  for (auto& [block, sentence] : said) {
    sentence.back() = '.';
    edited.set_source_after(block, "Fitted", sentence);
  }
  const config::Node& frameworks = config::require(calibration.table.document(), "frameworks");
  for (const auto& [framework, width] : calibration.interval_log_width) {
    if (frameworks.find(framework) != nullptr)
      edited.set("frameworks." + framework, "interval_log_width", width);
  }
  return edited.text();
}

}  // namespace sextant::calibration
