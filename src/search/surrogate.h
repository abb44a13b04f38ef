// The planner that learns: measured trials correct the projection, and the next trial is where the correction
// leaves most to gain.
//
// Nothing is drawn at random, so a seed has nothing to decide; ties go to the earlier point. Needs no network
// and no key. A decision takes some tens of milliseconds for 20,000 legal points and 30 trials.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "search/beliefs.h"
#include "search/planner.h"
#include "search/prior.h"

namespace sextant::search {

struct SurrogateOptions {
  BeliefOptions belief{};
  /// Stop when no trial is expected to gain more than this share; 0: spend the whole budget.
  double least_gain = 0;
};

/// The point to use.
struct Recommendation {
  Point point;
  Prediction predicted;
  Seen seen = Seen::kNo;
  double measured = 0;      ///< mean of its trials; 0 when it was not run
  std::size_t repeats = 0;  ///< trials behind `measured`
};

/// What the surrogate thinks of a point. `known` is false for points that are not legal.
struct Opinion {
  bool known = false;
  Seen seen = Seen::kNo;
  Prediction predicted{};  ///< gain as trial_gains has it; 0 while nothing has run
};

class Surrogate : public Planner {
 public:
  /// `prior` must outlive the planner. Throws what check_prior throws.
  Surrogate(const Prior& prior, SurrogateOptions options);
  ~Surrogate() override;

  std::string_view name() const override { return "surrogate"; }
  Decision next(const History& history, const TrialBudget& budget) override;

  /// The best that ran by what all trials together say of it; a point that was never run only where it leads
  /// by more than its uncertainty and nearly surely runs. Empty when nothing may be recommended.
  std::optional<Recommendation> recommend(const History& history);

  /// Corrected projections of any points, each with its expected gain: with these, proposals of others
  /// compete.
  std::vector<Opinion> opinions(const History& history, std::span<const Point> points);

  /// The `count` points with the most to gain, most first.
  std::vector<Point> proposals(const History& history, std::size_t count);

 private:
  class Mind;
  std::unique_ptr<Mind> mind_;
};

}  // namespace sextant::search
