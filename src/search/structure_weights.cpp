// Which pairs of axes interact: the weights of the hypotheses of a correction model.
//
// Problem. Ten axes have 45 pairs. A handful of trials cannot tell 45 variances apart, and the most likely
// value of each (maximum marginal likelihood) would seize on the first coincidence. But few pairs interact
// strongly, and which ones is a discrete question with a finite number of answers.
//
// Idea. Average over the answers (Hoeting, Madigan, Raftery and Volinsky, Bayesian Model Averaging, 1999): no
// strong pair, each one alone, and extensions of the likeliest by a further pair; weights by marginal
// likelihood times the prior odds of a strong pair; answers with next to no weight are dropped (Occam's
// window, Madigan and Raftery 1994). While nothing tells the structures apart all keep their prior weight,
// and what is unknown stays in the spread of the predictions.
//
// The common scales (main, weak, noise, length) are chosen by maximum a posteriori along coordinates on small
// grids, twice: without a strong pair, and with the likeliest one, because an interaction left out looks like
// noise. Every structure is then weighed at both settings and at each size of strong interactions.
//
// Cost. About 40 likelihoods for each choice of scales and a few for each structure, n³/3 each for n trials.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "search/correction_model.h"
#include "search/gaussian_process.h"

namespace sextant::search {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t kBeam = 8;       ///< structures that are extended
constexpr std::size_t kPartners = 16;  ///< pairs with which each is
constexpr std::size_t kMostKept = 64;  ///< hypotheses handed on
constexpr double kKeptWeight = 0.98;   ///< together they hold so much
constexpr int kRounds = 2;             ///< of the search along coordinates

double log_of_sum(double a, double b) {
  const double most = std::max(a, b);
  if (most == -std::numeric_limits<double>::infinity()) return most;
  return most + std::log(std::exp(a - most) + std::exp(b - most));
}

struct Weighed {
  Structure structure;
  CorrectionScales scales;  // the likeliest
  double log_likeliest = -std::numeric_limits<double>::infinity();
  double log_weight = -std::numeric_limits<double>::infinity();
};

/// The marginal likelihood of everything measured, with what can be shared between calls.
class Evidence {
 public:
  Evidence(const CorrectionModel& model, std::span<const Correction> measured)
      : model_(model), values_(static_cast<Eigen::Index>(measured.size())) {
    for (std::size_t i = 0; i < measured.size(); ++i) {
      trials_.push_back(measured[i].candidate);
      values_[static_cast<Eigen::Index>(i)] = measured[i].log_ratio;
    }
    for (const double length : model.belief().length.values) {
      similarities_.emplace(length, Similarity(model.points(), model.kernels(length), trials_, trials_));
    }
  }

  /// Logarithm of likelihood times prior weight of the scales.
  double operator()(const CorrectionScales& scales, const Structure& structure) {
    if (values_.size() == 0) return log_prior(scales);
    MatrixXd covariance = correction_covariance(similarities_.at(scales.length), scales, {});
    for (const AxisPair& pair : structure) {
      covariance += (scales.strong * scales.strong) * product(scales.length, pair);
    }
    covariance.diagonal().array() += scales.noise * scales.noise;
    return GaussianProcess(covariance, values_).log_evidence() + log_prior(scales);
  }

 private:
  static double log_prior(const ScaleChoice& choice, double value) {
    const auto found = std::ranges::find(choice.values, value);
    return choice.log_prior[static_cast<std::size_t>(found - choice.values.begin())];
  }

  double log_prior(const CorrectionScales& scales) const {
    const CorrectionPrior& belief = model_.belief();
    return log_prior(belief.main, scales.main) + log_prior(belief.weak, scales.weak) +
           log_prior(belief.noise, scales.noise) + log_prior(belief.length, scales.length) +
           log_prior(belief.strong, scales.strong);
  }

  const MatrixXd& product(double length, AxisPair pair) {
    const auto key = std::pair(length, pair);
    const auto found = products_.find(key);
    if (found != products_.end()) return found->second;
    return products_.emplace(key, similarities_.at(length).pair(pair)).first->second;
  }

  const CorrectionModel& model_;
  std::vector<std::size_t> trials_;
  VectorXd values_;
  std::map<double, Similarity> similarities_;
  std::map<std::pair<double, AxisPair>, MatrixXd> products_;
};

double likeliest(const ScaleChoice& choice) {
  return choice.values[static_cast<std::size_t>(std::ranges::max_element(choice.log_prior) -
                                                choice.log_prior.begin())];
}

CorrectionScales prior_scales(const CorrectionPrior& belief) {
  CorrectionScales scales;
  scales.bias = belief.bias;
  scales.main = likeliest(belief.main);
  scales.weak = likeliest(belief.weak);
  scales.residual = scales.weak;
  scales.noise = likeliest(belief.noise);
  scales.length = likeliest(belief.length);
  scales.strong = belief.strong.values.back();
  return scales;
}

/// The scales that explain the measurements best under `structure`, along one coordinate after another.
CorrectionScales fit_scales(Evidence& evidence, const CorrectionPrior& belief, const Structure& structure) {
  CorrectionScales best = prior_scales(belief);
  double best_value = evidence(best, structure);
  const auto along = [&](const ScaleChoice& choice, auto set) {
    const CorrectionScales start = best;
    for (const double value : choice.values) {
      CorrectionScales scales = start;
      set(scales, value);
      const double log_value = evidence(scales, structure);
      if (log_value > best_value) {
        best_value = log_value;
        best = scales;
      }
    }
  };
  for (int round = 0; round < kRounds; ++round) {
    along(belief.noise, [](CorrectionScales& s, double value) { s.noise = value; });
    along(belief.main, [](CorrectionScales& s, double value) { s.main = value; });
    along(belief.weak, [](CorrectionScales& s, double value) { s.weak = s.residual = value; });
    along(belief.length, [](CorrectionScales& s, double value) { s.length = value; });
    if (!structure.empty()) along(belief.strong, [](CorrectionScales& s, double value) { s.strong = value; });
  }
  return best;
}

class Weighing {
 public:
  Weighing(Evidence& evidence, const CorrectionPrior& belief, std::size_t pairs)
      : evidence_(evidence), belief_(belief) {
    const double share =
        std::min(0.5, belief.expected_strong / static_cast<double>(std::max<std::size_t>(pairs, 1)));
    log_odds_ = std::log(share / (1 - share));
  }

  void settings(std::vector<CorrectionScales> scales) { settings_ = std::move(scales); }

  Weighed weigh(const Structure& structure) {
    Weighed weighed{.structure = structure, .scales = {}};
    const double log_odds = static_cast<double>(structure.size()) * log_odds_;
    // A structure without strong pairs has no strong scale to average over.
    const std::size_t sizes = structure.empty() ? 1 : belief_.strong.values.size();
    for (const CorrectionScales& setting : settings_) {
      for (std::size_t size = 0; size < sizes; ++size) {
        CorrectionScales scales = setting;
        scales.strong = belief_.strong.values[size];
        const double value = evidence_(scales, structure) + log_odds - std::log(static_cast<double>(sizes));
        weighed.log_weight = log_of_sum(weighed.log_weight, value);
        if (value > weighed.log_likeliest) {
          weighed.log_likeliest = value;
          weighed.scales = scales;
        }
      }
    }
    return weighed;
  }

 private:
  Evidence& evidence_;
  const CorrectionPrior& belief_;
  double log_odds_ = 0;
  std::vector<CorrectionScales> settings_;
};

void sort_by_weight(std::vector<Weighed>& weighed) {
  std::ranges::stable_sort(weighed, std::ranges::greater{}, &Weighed::log_weight);
}

/// Extensions of the heaviest of `last` by one pair that is heavy by itself; none twice.
std::vector<Structure> extensions(std::vector<Weighed> last, std::vector<Weighed> single) {
  sort_by_weight(last);
  sort_by_weight(single);
  last.resize(std::min(last.size(), kBeam));
  single.resize(std::min(single.size(), kPartners));
  std::vector<Structure> result;
  for (const Weighed& weighed : last) {
    for (const Weighed& partner : single) {
      Structure structure = weighed.structure;
      const AxisPair pair = partner.structure.front();
      if (std::ranges::find(structure, pair) != structure.end()) continue;
      structure.insert(std::ranges::upper_bound(structure, pair), pair);
      if (std::ranges::find(result, structure) == result.end()) result.push_back(std::move(structure));
    }
  }
  return result;
}

std::vector<Hypothesis> heaviest(std::vector<Weighed> weighed) {
  sort_by_weight(weighed);
  double total = -std::numeric_limits<double>::infinity();
  for (const Weighed& w : weighed) total = log_of_sum(total, w.log_weight);
  std::vector<Hypothesis> result;
  double sum = 0;
  for (const Weighed& w : weighed) {
    if (result.size() == kMostKept || sum >= kKeptWeight) break;
    result.push_back(
        {.structure = w.structure, .scales = w.scales, .weight = std::exp(w.log_weight - total)});
    sum += result.back().weight;
  }
  for (Hypothesis& hypothesis : result) hypothesis.weight /= sum;
  return result;
}

}  // namespace

std::vector<Hypothesis> CorrectionModel::weigh(std::span<const Correction> measured) const {
  std::vector<AxisPair> pairs;
  for (std::size_t i = 0; i < axes().size(); ++i) {
    for (std::size_t j = i + 1; j < axes().size(); ++j) pairs.push_back({axes()[i], axes()[j]});
  }
  Evidence evidence(*this, measured);
  Weighing weighing(evidence, belief_, pairs.size());
  std::vector<Weighed> all;
  if (!belief_.only.empty()) {
    for (const Structure& structure : belief_.only) {
      weighing.settings({fit_scales(evidence, belief_, structure)});
      all.push_back(weighing.weigh(structure));
    }
    return heaviest(std::move(all));
  }
  std::vector<CorrectionScales> settings{fit_scales(evidence, belief_, {})};
  weighing.settings(settings);
  if (!measured.empty() && !pairs.empty()) {
    for (const AxisPair& pair : pairs) all.push_back(weighing.weigh({pair}));
    sort_by_weight(all);
    settings.push_back(fit_scales(evidence, belief_, all.front().structure));
    weighing.settings(settings);
    all.clear();
  }
  all.push_back(weighing.weigh({}));
  std::vector<Weighed> single;
  for (const AxisPair& pair : pairs) single.push_back(weighing.weigh({pair}));
  std::vector<Weighed> last = single;
  for (std::size_t size = 1;; ++size) {
    all.insert(all.end(), last.begin(), last.end());
    if (size >= belief_.most_strong || measured.size() < 3) break;
    const std::vector<Structure> next = extensions(std::move(last), single);
    last.clear();
    for (const Structure& structure : next) last.push_back(weighing.weigh(structure));
  }
  return heaviest(std::move(all));
}

}  // namespace sextant::search
