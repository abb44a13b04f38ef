#pragma once

#include <memory>
#include <optional>

#include "search/correction_model.h"
#include "search/failure_model.h"
#include "search/memory_model.h"
#include "search/planner.h"
#include "search/prior.h"

namespace sextant::search {

struct SurrogateOptions {
  CorrectionPrior correction = default_correction_prior();
  FailureBelief failures;
  MemoryScales memory;
  std::size_t per_cell = 2;
  int mode = 0;
  double surprise = 0.005;
  double surprise_size = 0.15;
};

struct Recommendation {
  Point point;
  double objective = 0;
  bool visited = false;
};

class Surrogate : public Planner {
 public:
  Surrogate(const Prior& prior, SurrogateOptions options);
  std::string_view name() const override { return "surrogate"; }
  Decision next(const History& history, const TrialBudget& budget) override;
  std::optional<Recommendation> recommend(const History& history, bool visited_only);
  std::string explain() const;

 private:
  struct State;
  void update(const History& history);
  const Prior& prior_;
  SurrogateOptions options_;
  CorrectionModel model_;
  std::unique_ptr<State> state_;
 public:
  ~Surrogate() override;
};

}  // namespace sextant::search
