#include "tuner/bias.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "search/correction_model.h"

namespace sextant::tuner {
namespace {

constexpr double kNormal95 = 1.6449;  // 95th percentile of the standard normal: both sides make 90 %
/// Trials below which grouping by an axis says more of chance than of the axis.
constexpr std::size_t kLeastTrials = 5;
constexpr double kLeastShare = 0.2;

/// 95th percentile of Student's t with 1 … 30 degrees of freedom (any table of the distribution).
double student_95(std::size_t degrees) {
  constexpr std::array kTable{6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812,
                              1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725,
                              1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701, 1.699, 1.697};
  return degrees <= kTable.size() ? kTable.at(degrees - 1) : kNormal95;
}

struct Ratio {
  std::size_t candidate = 0;
  double log = 0;
};

std::vector<Ratio> log_ratios(const search::Prior& prior, const search::History& history) {
  std::vector<Ratio> ratios;
  for (const search::Trial& trial : history) {
    const auto index = prior.find(trial.point);
    if (trial.result.state != search::TrialState::kOk || !index) continue;
    ratios.push_back({*index, std::log(trial.result.objective / prior.legal[*index].objective)});
  }
  return ratios;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// Sum of squares around the mean.
double scatter(const std::vector<double>& values) {
  const double centre = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - centre) * (value - centre);
  return sum;
}

BiasFactor factor_of(const std::vector<double>& logs) {
  BiasFactor bias{.trials = logs.size()};
  if (logs.empty()) return bias;
  const double centre = mean(logs);
  bias.factor = std::exp(centre);
  if (logs.size() == 1) {
    bias.low = 0;
    bias.high = std::numeric_limits<double>::infinity();
    return bias;
  }
  const auto count = static_cast<double>(logs.size());
  bias.spread = std::sqrt(scatter(logs) / (count - 1));
  const double half = student_95(logs.size() - 1) * bias.spread / std::sqrt(count);
  bias.low = std::exp(centre - half);
  bias.high = std::exp(centre + half);
  return bias;
}

/// What is explained by giving each value of the axis its own bias.
ExplainingAxis explain(const search::Prior& prior, const std::vector<Ratio>& ratios, std::size_t axis) {
  std::vector<double> all;
  std::map<std::size_t, std::vector<double>> by_value;
  for (const Ratio& ratio : ratios) {
    all.push_back(ratio.log);
    by_value[prior.legal[ratio.candidate].point[axis]].push_back(ratio.log);
  }
  ExplainingAxis result{.axis = axis};
  double within = 0;
  for (const auto& [value, logs] : by_value) {
    within += scatter(logs);
    result.values.push_back({axis, value, factor_of(logs)});
  }
  const double total = scatter(all);
  const std::size_t groups = by_value.size();
  if (groups < 2 || groups >= all.size() || total <= 0) return result;
  const double freedom = static_cast<double>(all.size() - 1) / static_cast<double>(all.size() - groups);
  result.share = 1 - within / total * freedom;
  return result;
}

std::vector<search::Correction> corrections(const std::vector<Ratio>& ratios) {
  std::vector<search::Correction> measured;
  for (const Ratio& ratio : ratios) measured.push_back({ratio.candidate, ratio.log});
  return measured;
}

std::vector<ExplainingPair> explaining_pairs(const search::Prior& prior, const std::vector<Ratio>& ratios) {
  const search::CorrectionModel model(prior, search::default_correction_prior());
  std::map<std::pair<std::size_t, std::size_t>, double> weight;
  for (const search::Hypothesis& hypothesis : model.weigh(corrections(ratios))) {
    for (const search::AxisPair& pair : hypothesis.structure) weight[{pair.a, pair.b}] += hypothesis.weight;
  }
  std::vector<ExplainingPair> pairs;
  for (const auto& [axes, probability] : weight) {
    if (probability > 0.5) pairs.push_back({axes.first, axes.second, probability});
  }
  std::ranges::stable_sort(pairs, std::ranges::greater{}, &ExplainingPair::probability);
  return pairs;
}

}  // namespace

Bias projection_bias(const search::Prior& prior, const search::History& history) {
  const std::vector<Ratio> ratios = log_ratios(prior, history);
  std::vector<double> logs;
  for (const Ratio& ratio : ratios) logs.push_back(ratio.log);
  Bias bias{.overall = factor_of(logs), .axes = {}, .pairs = {}};
  if (ratios.size() < kLeastTrials) return bias;
  for (std::size_t axis = 0; axis < prior.space.axes.size(); ++axis) {
    ExplainingAxis explaining = explain(prior, ratios, axis);
    if (explaining.share >= kLeastShare) bias.axes.push_back(std::move(explaining));
  }
  std::ranges::stable_sort(bias.axes, std::ranges::greater{}, &ExplainingAxis::share);
  bias.pairs = explaining_pairs(prior, ratios);
  return bias;
}

std::vector<Corrected> corrected(const search::Prior& prior, const search::History& history,
                                 std::span<const std::size_t> candidates) {
  std::vector<Corrected> result;
  if (candidates.empty()) return result;
  const search::CorrectionModel model(prior, search::default_correction_prior());
  const std::vector<search::Correction> measured = corrections(log_ratios(prior, history));
  const std::vector<search::Hypothesis> hypotheses = model.weigh(measured);
  const auto posteriors = model.predict(measured, hypotheses, candidates);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto row = static_cast<Eigen::Index>(i);
    double mean = 0;
    double square = 0;
    for (const search::CorrectionPosterior& posterior : posteriors) {
      const double weight = posterior.hypothesis.weight;
      mean += weight * posterior.mean[row];
      square += weight * (std::pow(posterior.mean[row], 2) + std::pow(posterior.deviation[row], 2));
    }
    const double deviation = std::sqrt(std::max(0.0, square - mean * mean));
    const double projected = prior.legal[candidates[i]].objective;
    result.push_back({.candidate = candidates[i],
                      .objective = projected * std::exp(mean),
                      .low = projected * std::exp(mean - kNormal95 * deviation),
                      .high = projected * std::exp(mean + kNormal95 * deviation)});
  }
  return result;
}

}  // namespace sextant::tuner
