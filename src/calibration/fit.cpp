#include "calibration/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "calibration/crossed.h"
#include "calibration/efficiency_text.h"
#include "calibration/problem.h"
#include "config/embedded_data.h"

namespace sextant::calibration {
namespace {

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

/// Fewer rows say nothing of how wide an interval must be.
constexpr std::size_t kFewRows = 8;

double percentile90(std::vector<double> sizes) {
  std::ranges::sort(sizes);
  return sizes[std::min(sizes.size() - 1, static_cast<std::size_t>(0.9 * static_cast<double>(sizes.size())))];
}

/// Intervals of frameworks from their left-out rows that `counts` accepts; a handful of rows says nothing.
std::map<std::string, double> intervals(const Problem& problem, const std::vector<double>& crossed,
                                        const std::function<bool(const FitRow&)>& counts) {
  std::map<std::string, std::vector<double>> sizes;
  for (std::size_t i = 0; i < crossed.size(); ++i) {
    const FitRow& row = problem.rows()[i];
    if (counts(row)) sizes[row.framework].push_back(std::abs(crossed[i]));
  }
  std::map<std::string, double> widths;
  for (const auto& [name, values] : sizes) {
    if (values.size() >= kFewRows) widths[name] = percentile90(values);
  }
  return widths;
}

/// Starts where the calibration file in use stands, with the widths of the priors.
std::vector<FittedParameter> priors_in_use(std::vector<FittedParameter> parameters) {
  const EfficiencyTable table;
  for (FittedParameter& p : parameters) p.value = p.prior = table.get(p.block, p.name);
  return parameters;
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

/// Fits that leave rows out: intervals, and the record where one is asked for.
void cross(const Problem& problem, const LeastSquaresResult& fit, const CalibrateOptions& options,
           Calibration& result) {
  const std::span<const FitRow> rows = problem.rows();
  const std::vector<int> groups = folds_of_groups(rows, options.folds);
  const std::vector<double> crossed = left_out_residuals(problem, groups, options.folds, options.progress);
  result.mean_abs_log_crossed = mean_size(crossed);
  const auto mixes = [](const FitRow& row) { return row.job.job.model->has_experts(); };
  result.moe_interval_log_width = intervals(problem, crossed, mixes);
  std::vector<double> mixed;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (mixes(rows[i])) mixed.push_back(std::abs(crossed[i]));
  }
  if (mixed.size() >= kFewRows) result.moe_interval_log_width["defaults"] = percentile90(mixed);
  result.interval_log_width = intervals(problem, crossed, [&](const FitRow& row) { return !mixes(row); });
  // Frameworks with few dense rows: all of theirs.
  for (const auto& [name, width] : intervals(problem, crossed, [](const FitRow&) { return true; }))
    result.interval_log_width.try_emplace(name, width);
  if (!options.record) return;
  const std::vector<int> singles = folds_of_rows(rows.size(), options.folds);
  const std::vector<double> single = left_out_residuals(problem, singles, options.folds, options.progress);
  const std::vector<double> fitted = problem.residuals(fit.x, all_indices(rows.size()));
  const std::vector<double> null_rows = null_residuals(rows, singles, options.folds);
  const std::vector<double> null_groups = null_residuals(rows, groups, options.folds);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    result.crossed.push_back({rows[i].id, fitted[i], single[i], crossed[i], null_rows[i], null_groups[i]});
  }
}

}  // namespace

Calibration calibrate(std::span<const MeasuredRow> rows, const CalibrateOptions& options) {
  const Problem problem(fit_rows(rows, options.cluster),
                        options.refine ? priors_in_use(read_priors()) : read_priors());
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
  if (options.folds >= 2) cross(problem, fit, options, result);
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
  const auto set_widths = [&](const char* key, const std::map<std::string, double>& widths) {
    for (const auto& [framework, width] : widths) {
      if (framework == "defaults") edited.set(framework, key, width);
      if (frameworks.find(framework) != nullptr) edited.set("frameworks." + framework, key, width);
    }
  };
  set_widths("interval_log_width", calibration.interval_log_width);
  set_widths("moe_interval_log_width", calibration.moe_interval_log_width);
  return edited.text();
}

}  // namespace sextant::calibration
