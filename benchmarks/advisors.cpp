#include "advisors.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace sextant::benchmarks {
namespace {

class Advisor : public search::Proposer {
 public:
  Advisor(const search::Prior& prior, const VirtualCluster& cluster, Advice advice, std::uint64_t seed)
      : prior_(prior), advice_(advice), order_(prior.legal.size()) {
    std::vector<double> worth(prior.legal.size());
    for (std::size_t i = 0; i < worth.size(); ++i) {
      std::mt19937_64 random(seed * 1'000'003 + i);
      std::normal_distribution<double> error(0, 1);
      const double known = advice.knows_truth ? cluster.truth(i) : prior.legal[i].objective;
      worth[i] = known * std::exp(advice.error * error(random)) * (advice.worst_first ? -1 : 1);
    }
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, std::ranges::greater{}, [&](std::size_t i) { return worth[i]; });
  }

  std::string_view name() const override { return "advisor"; }
  void begin() override { requests_ = 0; }

  search::ProposalAnswer propose(const search::ProposalRequest& request) override {
    search::ProposalAnswer answer;
    if (++requests_ >= advice_.fails_at_request) {
      answer.failure = "no answer any more";
      return answer;
    }
    for (const std::size_t index : order_) {
      const search::Candidate& candidate = prior_.legal[index];
      if (answer.ranked.size() == request.wanted) break;
      if (prior_.fits(candidate) && !search::standing(request.history, candidate.point))
        answer.ranked.push_back({candidate.point, "an advisor's word"});
    }
    return answer;
  }

 private:
  const search::Prior& prior_;
  Advice advice_;
  std::vector<std::size_t> order_;
  std::size_t requests_ = 0;
};

}  // namespace

std::unique_ptr<search::Proposer> advisor(const search::Prior& prior, const VirtualCluster& cluster,
                                          Advice advice, std::uint64_t seed) {
  return std::make_unique<Advisor>(prior, cluster, advice, seed);
}

}  // namespace sextant::benchmarks
