// A planner that is asked after every trial, also after those that an earlier session has recorded.
//
// Some planners depend on when they were asked, not on the history alone: one that talks to a language model
// has said and heard something at each turn. Behind this one they take the same turns whether a search ran
// through or was resumed: given a history of n trials it first asks for the decisions after 0, 1, … n − 1.
// Cost: those decisions once more when a search is resumed.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "search/planner.h"

namespace sextant::search {

class StepByStep : public Planner {
 public:
  explicit StepByStep(std::unique_ptr<Planner> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }

  Decision next(const History& history, const TrialBudget& budget) override {
    const bool continues =
        asked_.size() <= history.size() && std::equal(asked_.begin(), asked_.end(), history.begin());
    std::size_t first = continues ? asked_.size() : 0;
    if (continues && decision_ && first == history.size()) return *decision_;
    if (continues && decision_) ++first;
    for (std::size_t length = first; length <= history.size(); ++length) {
      asked_.assign(history.begin(), history.begin() + static_cast<std::ptrdiff_t>(length));
      decision_ = inner_->next(asked_, budget);
    }
    return *decision_;
  }

 private:
  std::unique_ptr<Planner> inner_;
  History asked_;
  std::optional<Decision> decision_;
};

}  // namespace sextant::search
