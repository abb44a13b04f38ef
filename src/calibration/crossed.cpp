#include "calibration/crossed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "model/parameters.h"

namespace sextant::calibration {
namespace {

double mean_size(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += std::abs(v);
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// ln of the share of the peak that model FLOPs reach.
double log_utilisation(const FitRow& row) {
  const parallel::Layout& layout = row.job.job.layout;
  const double tokens = row.job.flushes * static_cast<double>(layout.global_batch) *
                        static_cast<double>(layout.sequence_tokens);
  const double flops = tokens * model::model_flops_per_token(*row.job.job.model, layout.sequence_tokens);
  const double peak = row.job.job.cluster->accelerator.peak(layout.precision) * layout.world;
  return std::log(flops / (row.measured_s * peak));
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

/// From the closest likeness to the loosest.
std::array<std::string, 3> likenesses(const FitRow& row) {
  const std::string_view precision = cluster::name(row.job.job.layout.precision);
  return {fmt::format("{}|{}|{}", row.framework, row.accelerator, precision),
          fmt::format("{}|{}", row.family, precision), ""};
}

}  // namespace

std::vector<int> folds_of_rows(std::size_t count, int folds) {
  std::vector<int> fold_of(count);
  for (std::size_t i = 0; i < count; ++i) fold_of[i] = static_cast<int>(i) % folds;
  return fold_of;
}

std::vector<int> folds_of_groups(std::span<const FitRow> rows, int folds) {
  std::map<std::string, int> of_group;
  std::vector<int> fold_of;
  int next = 0;
  for (const FitRow& row : rows) {
    const auto [place, is_new] = of_group.emplace(row.group, next % folds);
    if (is_new) ++next;
    fold_of.push_back(place->second);
  }
  return fold_of;
}

std::vector<double> left_out_residuals(const Problem& problem, const std::vector<int>& fold_of, int folds,
                                       const std::function<void(const std::string& line)>& say) {
  std::vector<double> crossed(problem.rows().size());
  for (int fold = 0; fold < folds; ++fold) {
    std::vector<std::size_t> kept, left;
    for (std::size_t i = 0; i < crossed.size(); ++i) (fold_of[i] == fold ? left : kept).push_back(i);
    if (left.empty()) continue;
    const LeastSquaresResult fit = problem.fit(kept);
    const std::vector<double> r = problem.residuals(fit.x, left);
    for (std::size_t k = 0; k < left.size(); ++k) crossed[left[k]] = r[k];
    if (say) say(fmt::format("fold {} of {}: {:.1f} %", fold + 1, folds, 100 * mean_size(r)));
  }
  return crossed;
}

std::vector<double> null_residuals(std::span<const FitRow> rows, const std::vector<int>& fold_of, int folds) {
  std::vector<double> crossed(rows.size());
  for (int fold = 0; fold < folds; ++fold) {
    std::map<std::string, std::vector<double>> known;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (fold_of[i] == fold) continue;
      for (const std::string& likeness : likenesses(rows[i]))
        known[likeness].push_back(log_utilisation(rows[i]));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (fold_of[i] != fold) continue;
      for (const std::string& likeness : likenesses(rows[i])) {
        if (!known.contains(likeness)) continue;
        // The time is inversely proportional to the utilisation.
        crossed[i] = log_utilisation(rows[i]) - median(known[likeness]);
        break;
      }
    }
  }
  return crossed;
}

}  // namespace sextant::calibration
