#include "search/correction_model.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "search/gaussian_process.h"

namespace sextant::search {
namespace {

constexpr std::size_t kBlockPoints = 512;  ///< places predicted together; keeps matrices in cache

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// A scale around `median`, a factor of two a step, log-normal with the deviation of `log_deviation`.
ScaleChoice log_normal(double median, double log_deviation, int steps) {
  ScaleChoice choice;
  for (int step = -steps; step <= steps; ++step) {
    const double distance = step * std::log(2.0) / log_deviation;
    choice.values.push_back(median * std::exp2(step));
    choice.log_prior.push_back(-0.5 * distance * distance);
  }
  return choice;
}

ScaleChoice equal(std::vector<double> values) {
  const std::size_t count = values.size();
  return {std::move(values), std::vector<double>(count, 0.0)};
}

std::vector<std::size_t> places_of(std::span<const Correction> measured) {
  std::vector<std::size_t> places;
  for (const Correction& m : measured) places.push_back(m.candidate);
  return places;
}

VectorXd values_of(std::span<const Correction> measured) {
  VectorXd values(static_cast<Eigen::Index>(measured.size()));
  for (std::size_t i = 0; i < measured.size(); ++i)
    values[static_cast<Eigen::Index>(i)] = measured[i].log_ratio;
  return values;
}

double square(double x) { return x * x; }

}  // namespace

CorrectionPrior default_correction_prior() {
  CorrectionPrior prior;
  prior.main = log_normal(0.02, 1.0, 2);
  prior.weak = log_normal(0.005, 1.0, 2);
  prior.noise = log_normal(0.012, 0.8, 2);
  prior.length = equal({0.0, 1.0, 3.0});
  prior.strong = equal({0.07, 0.2});
  return prior;
}

MatrixXd correction_covariance(const Similarity& similarity, const CorrectionScales& scales,
                               const Structure& structure) {
  MatrixXd covariance =
      (square(scales.bias) + square(scales.main) * similarity.axes().array() +
       square(scales.weak) * similarity.pairs().array() + square(scales.residual) * similarity.same().array())
          .matrix();
  for (const AxisPair& pair : structure) covariance += square(scales.strong) * similarity.pair(pair);
  return covariance;
}

double correction_variance(std::size_t axes, const CorrectionScales& scales, const Structure& structure) {
  const auto count = static_cast<double>(axes);
  return square(scales.bias) + count * square(scales.main) + 0.5 * count * (count - 1) * square(scales.weak) +
         square(scales.residual) + static_cast<double>(structure.size()) * square(scales.strong);
}

CorrectionModel::CorrectionModel(const Prior& prior, CorrectionPrior belief)
    : belief_(std::move(belief)), points_(prior) {
  for (const double length : belief_.length.values) kernels_.emplace_back(prior.space, length);
}

const AxisKernels& CorrectionModel::kernels(double length) const {
  const auto found = std::ranges::find(belief_.length.values, length);
  SEXTANT_CHECK(found != belief_.length.values.end());
  return kernels_[static_cast<std::size_t>(found - belief_.length.values.begin())];
}

std::vector<CorrectionPosterior> CorrectionModel::predict(std::span<const Correction> measured,
                                                          std::span<const Hypothesis> hypotheses,
                                                          std::span<const std::size_t> places) const {
  const auto count = static_cast<Eigen::Index>(places.size());
  const std::vector<std::size_t> trials = places_of(measured);
  const VectorXd values = values_of(measured);
  std::vector<CorrectionPosterior> result;
  std::vector<double> variances;
  for (const Hypothesis& hypothesis : hypotheses) {
    variances.push_back(correction_variance(axes().size(), hypothesis.scales, hypothesis.structure));
    result.push_back(
        {hypothesis, VectorXd::Zero(count), VectorXd::Constant(count, std::sqrt(variances.back()))});
  }
  if (measured.empty()) return result;
  std::map<double, Similarity> own;
  std::vector<GaussianProcess> processes;
  for (const Hypothesis& hypothesis : hypotheses) {
    const double length = hypothesis.scales.length;
    const Similarity& similarity = similarity_of(own, length, trials, trials);
    MatrixXd covariance = correction_covariance(similarity, hypothesis.scales, hypothesis.structure);
    covariance.diagonal().array() += square(hypothesis.scales.noise);
    processes.emplace_back(covariance, values);
  }
  for (std::size_t first = 0; first < places.size(); first += kBlockPoints) {
    const std::span<const std::size_t> block =
        places.subspan(first, std::min(kBlockPoints, places.size() - first));
    const auto at = static_cast<Eigen::Index>(first);
    const auto size = static_cast<Eigen::Index>(block.size());
    std::map<double, Similarity> cross;
    for (std::size_t h = 0; h < hypotheses.size(); ++h) {
      const Hypothesis& hypothesis = hypotheses[h];
      const Similarity& similarity = similarity_of(cross, hypothesis.scales.length, block, trials);
      const MatrixXd covariance = correction_covariance(similarity, hypothesis.scales, hypothesis.structure);
      result[h].mean.segment(at, size) = processes[h].means(covariance);
      result[h].deviation.segment(at, size) =
          (variances[h] - processes[h].explained_variances(covariance).array()).max(0).sqrt();
    }
  }
  return result;
}

const Similarity& CorrectionModel::similarity_of(std::map<double, Similarity>& known, double length,
                                                 std::span<const std::size_t> places,
                                                 std::span<const std::size_t> trials) const {
  return known.try_emplace(length, points_, kernels(length), places, trials).first->second;
}

}  // namespace sextant::search
