// Problem. A failure blames 55 suspects at once (ten values, 45 pairs of values). Exact probabilities would
// sum over all sets of culprits.
//
// Idea. Belief propagation on the noisy-or network of suspects and failures (Pearl 1988, chapter 4): each
// failure tells each of its suspects how likely the failure would be without it, given what is otherwise
// believed of the others; a few rounds settle. Exact for one failure; where failures share several suspects
// an approximation that blames each of them.
//
// Cost. Rounds × failures × suspects: some ten thousand operations.
#include "search/failure_model.h"

#include <algorithm>
#include <cmath>

#include "search/similarity.h"

namespace sextant::search {
namespace {

constexpr int kRounds = 60;
constexpr double kDamping = 0.5;  ///< share of a new message that is taken at once
constexpr double kLeastUnexplained = 1e-9;

double log_odds(double probability) { return std::log(probability / (1 - probability)); }

/// log(1 - p) for p with those log odds.
double log_complement(double odds) { return odds > 700 ? -odds : -std::log1p(std::exp(odds)); }

/// Log odds of each item after all failures.
std::vector<double> propagate(std::vector<double> odds, const std::vector<std::vector<std::size_t>>& failures,
                              double log_chance) {
  std::vector<std::vector<double>> messages;
  for (const auto& suspects : failures) messages.emplace_back(suspects.size(), 0.0);
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t f = 0; f < failures.size(); ++f) {
      std::vector<double> innocent;  // log of the probability, as all other failures see it
      double all_innocent = log_chance;
      for (std::size_t i = 0; i < failures[f].size(); ++i) {
        innocent.push_back(log_complement(odds[failures[f][i]] - messages[f][i]));
        all_innocent += innocent.back();
      }
      for (std::size_t i = 0; i < failures[f].size(); ++i) {
        const double failed_without = std::max(-std::expm1(all_innocent - innocent[i]), kLeastUnexplained);
        const double message = (1 - kDamping) * messages[f][i] - kDamping * std::log(failed_without);
        odds[failures[f][i]] += message - messages[f][i];
        messages[f][i] = message;
      }
    }
  }
  return odds;
}

}  // namespace

FailureModel::FailureModel(const Space& space, const History& history, const FailureBelief& belief)
    : log_chance_(std::log1p(-belief.chance)), axes_(turned_axes(space)) {
  std::vector<double> odds;
  for (const Axis& axis : space.axes) {
    counts_.push_back(axis.values.size());
    first_value_.push_back(odds.size());
    odds.resize(odds.size() + axis.values.size(), log_odds(belief.value));
  }
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    for (std::size_t j = i + 1; j < axes_.size(); ++j) {
      first_pair_.push_back(odds.size());
      odds.resize(odds.size() + counts_[axes_[i]] * counts_[axes_[j]], log_odds(belief.pair));
    }
  }
  std::vector<bool> cleared(odds.size(), false);
  std::vector<std::vector<std::size_t>> failures;
  for (const Trial& trial : history) {
    if (trial.result.state == TrialState::kOk) {
      for (const std::size_t item : items_of(trial.point)) cleared[item] = true;
    } else if (speaks_of_point(trial.result.state) && trial.result.state != TrialState::kOutOfMemory) {
      failures.push_back(items_of(trial.point));
    }
  }
  for (auto& suspects : failures) {
    std::erase_if(suspects, [&](std::size_t item) { return cleared[item]; });
  }
  odds = propagate(std::move(odds), failures, log_chance_);
  for (std::size_t item = 0; item < odds.size(); ++item) {
    log_works_.push_back(cleared[item] ? 0.0 : log_complement(odds[item]));
  }
}

std::vector<std::size_t> FailureModel::items_of(const Point& point) const {
  std::vector<std::size_t> items;
  for (const std::size_t axis : axes_) items.push_back(first_value_[axis] + point[axis]);
  std::size_t pair = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    for (std::size_t j = i + 1; j < axes_.size(); ++j) {
      items.push_back(first_pair_[pair++] + point[axes_[i]] * counts_[axes_[j]] + point[axes_[j]]);
    }
  }
  return items;
}

double FailureModel::works(const Point& point) const {
  double log_works = log_chance_;
  for (const std::size_t axis : axes_) log_works += log_works_[first_value_[axis] + point[axis]];
  std::size_t pair = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    for (std::size_t j = i + 1; j < axes_.size(); ++j) {
      log_works += log_works_[first_pair_[pair++] + point[axes_[i]] * counts_[axes_[j]] + point[axes_[j]]];
    }
  }
  return std::exp(log_works);
}

double FailureModel::never_works(std::size_t axis, std::size_t value) const {
  return -std::expm1(log_works_[first_value_[axis] + value]);
}

}  // namespace sextant::search
