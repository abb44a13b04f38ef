// Problem. Runs out of memory are measurements with one side only: they bound a value without showing it.
// Together with measured peaks they have no closed posterior.
//
// Idea. Expectation propagation: every one-sided observation is replaced by a normal one that, given all
// others, leaves the same mean and variance as the true one; rounds of this converge in a few steps (Minka
// 2001; the step function's moments and the updates: Rasmussen and Williams, 2006, sections 3.6 and 3.9,
// algorithm 3.5). What is left is ordinary regression with unequal noise.
//
// Cost. n³ an update of a site, so n⁴ a round for n trials: some million operations for 30.
#include "search/memory_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "search/axis_kernel.h"
#include "search/gaussian_process.h"
#include "search/normal.h"
#include "search/similarity.h"

namespace sextant::search {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kRounds = 10;
constexpr std::size_t kBlockPoints = 512;  ///< places predicted together; keeps the matrices in cache

/// Factors on the believed scales that are tried; their logarithms have a prior deviation of 1.
constexpr double kFactors[] = {0.125, 0.25, 0.5, 1.0, 2.0, 4.0};

enum class Side { kShown, kBelow, kAbove };

struct Peak {
  std::size_t candidate = 0;
  Side side = Side::kShown;
  double log_ratio = 0;  ///< shown, or the bound
};

std::vector<Peak> peaks_of(const Prior& prior, const History& history) {
  std::vector<Peak> peaks;
  for (const Trial& trial : history) {
    const auto index = prior.find(trial.point);
    if (!index || prior.legal[*index].peak_bytes <= 0) continue;
    const double projected = prior.legal[*index].peak_bytes;
    const bool ran = trial.result.state == TrialState::kOk;
    if (ran && trial.result.peak_bytes > 0) {
      peaks.push_back({*index, Side::kShown, std::log(trial.result.peak_bytes / projected)});
    } else if (std::isfinite(prior.limit_bytes)) {
      const double bound = std::log(prior.limit_bytes / projected);
      if (ran) peaks.push_back({*index, Side::kBelow, bound});
      if (trial.result.state == TrialState::kOutOfMemory) peaks.push_back({*index, Side::kAbove, bound});
    }
  }
  return peaks;
}

MatrixXd covariance(const Similarity& similarity, const MemoryScales& scales) {
  return (scales.bias * scales.bias + (scales.main * scales.main) * similarity.axes().array() +
          (scales.residual * scales.residual) * similarity.same().array())
      .matrix();
}

/// Normal observations that stand for the peaks: their precisions, and precisions times means.
struct Sites {
  VectorXd precision;
  VectorXd shift;
};

struct Marginals {
  VectorXd mean;
  VectorXd variance;
};

/// The factor of I + √P K √P, which regression with precisions P needs.
Eigen::LLT<MatrixXd> factor_of(const MatrixXd& prior_covariance, const VectorXd& root) {
  MatrixXd inner = root.asDiagonal() * prior_covariance * root.asDiagonal();
  inner.diagonal().array() += 1.0;
  return Eigen::LLT<MatrixXd>(inner);
}

Marginals marginals(const MatrixXd& prior_covariance, const Sites& sites) {
  const VectorXd root = sites.precision.cwiseSqrt();
  const MatrixXd half =
      factor_of(prior_covariance, root).matrixL().solve(root.asDiagonal() * prior_covariance);
  const MatrixXd posterior = prior_covariance - half.transpose() * half;
  return {posterior * sites.shift, posterior.diagonal()};
}

/// The normal observation that, after all others, leaves mean and variance as the one-sided one does.
void match_moments(const Peak& peak, double noise, const Marginals& now, Index i, Sites& sites) {
  const double rest_precision = 1 / now.variance[i] - sites.precision[i];
  if (!(rest_precision > 0)) return;
  const double rest_variance = 1 / rest_precision;
  const double rest_mean = rest_variance * (now.mean[i] / now.variance[i] - sites.shift[i]);
  const double direction = peak.side == Side::kAbove ? 1 : -1;
  const double spread = std::sqrt(rest_variance + noise * noise);
  const double z = direction * (rest_mean - peak.log_ratio) / spread;
  // Below -30 deviations the ratio density / probability is -z to within 1e-3.
  const double ratio = z < -30 ? -z : normal_density(z) / normal_below(z);
  const double mean = rest_mean + direction * rest_variance * ratio / spread;
  const double taken =
      rest_variance * ratio * (z + ratio) / (spread * spread);  // share of the variance, below 1
  const double variance = std::max(rest_variance * (1 - taken), 1e-12);
  sites.precision[i] = std::max(1 / variance - rest_precision, 0.0);
  sites.shift[i] = mean / variance - rest_mean * rest_precision;
}

Sites approximate(const std::vector<Peak>& peaks, const MatrixXd& prior_covariance, double noise) {
  const auto count = static_cast<Index>(peaks.size());
  Sites sites{VectorXd::Zero(count), VectorXd::Zero(count)};
  bool one_sided = false;
  for (Index i = 0; i < count; ++i) {
    const Peak& peak = peaks[static_cast<std::size_t>(i)];
    one_sided = one_sided || peak.side != Side::kShown;
    if (peak.side != Side::kShown) continue;
    sites.precision[i] = 1 / (noise * noise);
    sites.shift[i] = peak.log_ratio / (noise * noise);
  }
  for (int round = 0; one_sided && round < kRounds; ++round) {
    for (Index i = 0; i < count; ++i) {
      const Peak& peak = peaks[static_cast<std::size_t>(i)];
      if (peak.side == Side::kShown) continue;
      match_moments(peak, noise, marginals(prior_covariance, sites), i, sites);
    }
  }
  return sites;
}

/// The scales under which the peaks that were shown are likeliest.
MemoryScales fitted(const PointTable& points, const AxisKernels& kernels, const std::vector<Peak>& peaks,
                    const MemoryScales& belief) {
  std::vector<std::size_t> trials;
  std::vector<double> shown;
  for (const Peak& peak : peaks) {
    if (peak.side != Side::kShown) continue;
    trials.push_back(peak.candidate);
    shown.push_back(peak.log_ratio);
  }
  if (trials.size() < 2) return belief;
  const Similarity similarity(points, kernels, trials, trials, false);
  const VectorXd values = Eigen::Map<const VectorXd>(shown.data(), static_cast<Index>(shown.size()));
  MemoryScales best = belief;
  double best_evidence = -std::numeric_limits<double>::infinity();
  for (const double main : kFactors) {
    for (const double residual : kFactors) {
      MemoryScales scales = belief;
      scales.main *= main;
      scales.residual *= residual;
      MatrixXd own = covariance(similarity, scales);
      own.diagonal().array() += scales.noise * scales.noise;
      const double distance2 = std::pow(std::log(main), 2) + std::pow(std::log(residual), 2);
      const double evidence = GaussianProcess(own, values).log_evidence() - 0.5 * distance2;
      if (evidence > best_evidence) {
        best_evidence = evidence;
        best = scales;
      }
    }
  }
  return best;
}

}  // namespace

MemoryPosterior memory_posterior(const Prior& prior, const PointTable& points, const History& history,
                                 const MemoryScales& belief) {
  const auto count = static_cast<Index>(prior.legal.size());
  const AxisKernels kernels(prior.space, belief.length);
  const std::vector<Peak> peaks = peaks_of(prior, history);
  const MemoryScales scales = fitted(points, kernels, peaks, belief);
  const double variance = scales.bias * scales.bias +
                          static_cast<double>(points.axes().size()) * scales.main * scales.main +
                          scales.residual * scales.residual;
  const double noise_variance = scales.noise * scales.noise;
  MemoryPosterior result{VectorXd::Zero(count),
                         VectorXd::Constant(count, std::sqrt(variance + noise_variance))};
  if (peaks.empty()) return result;
  std::vector<std::size_t> trials;
  for (const Peak& peak : peaks) trials.push_back(peak.candidate);
  const MatrixXd own = covariance(Similarity(points, kernels, trials, trials, false), scales);
  const Sites sites = approximate(peaks, own, scales.noise);
  const VectorXd root = sites.precision.cwiseSqrt();
  const Eigen::LLT<MatrixXd> factor = factor_of(own, root);
  const VectorXd weights =
      sites.shift - root.asDiagonal() * factor.solve(root.asDiagonal() * (own * sites.shift));
  std::vector<std::size_t> places;
  for (std::size_t first = 0; first < prior.legal.size(); first += kBlockPoints) {
    places.clear();
    const std::size_t last = std::min(prior.legal.size(), first + kBlockPoints);
    for (std::size_t i = first; i < last; ++i) places.push_back(i);
    const MatrixXd cross = covariance(Similarity(points, kernels, places, trials, false), scales);
    const auto size = static_cast<Index>(places.size());
    const auto at = static_cast<Index>(first);
    result.mean.segment(at, size) = cross * weights;
    const VectorXd explained =
        factor.matrixL().solve(root.asDiagonal() * cross.transpose()).colwise().squaredNorm();
    result.deviation.segment(at, size) = ((variance - explained.array()).max(0) + noise_variance).sqrt();
  }
  return result;
}

VectorXd probability_of_fitting(const Prior& prior, const MemoryPosterior& posterior) {
  VectorXd result(posterior.mean.size());
  for (Index i = 0; i < result.size(); ++i) {
    const double projected = prior.legal[static_cast<std::size_t>(i)].peak_bytes;
    const bool plays = projected > 0 && std::isfinite(prior.limit_bytes);
    result[i] = plays ? normal_below((std::log(prior.limit_bytes / projected) - posterior.mean[i]) /
                                     posterior.deviation[i])
                      : 1.0;
  }
  return result;
}

}  // namespace sextant::search
