#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "search/prior.h"
#include "search/run_trials.h"

namespace sextant::benchmarks {

/// Families of hidden truths.
enum class Family { kCoin, kUniform, kSigns, kSmooth, kCell, kBonus, kBlock, kMain, kTwo, kNone };
std::string family_name(Family family);

class VirtualCluster : public search::TrialEvaluator {
 public:
  VirtualCluster(const search::Prior& prior, Family family, std::uint64_t number, std::uint64_t noise_seed);
  search::TrialResult run(const search::TrialRequest& request, const search::StopRequest& stop) override;
  /// Noise-free objective; 0 where it does not run.
  double truth(std::size_t candidate) const { return truth_[candidate]; }
  double optimum() const { return optimum_; }
  std::string description() const { return description_; }
  std::size_t a = 0, b = 0;

 private:
  const search::Prior& prior_;
  std::uint64_t noise_seed_;
  std::vector<double> truth_;
  std::vector<double> peak_;
  std::vector<bool> broken_;
  double optimum_ = 0;
  std::string description_;
};

}  // namespace sextant::benchmarks
