// One trial in words and figures: lines of progress for people, and what the journal keeps of it beside its
// result.
#pragma once

#include <string>

#include "trials/command_evaluator.h"
#include "tuner/measured_setup.h"
#include "tuner/run_record.h"

namespace sextant::tuner {

/// What is known before a command runs. `number` as in TrialRequest.
TrialStart trial_start(const search::TrialRequest& request, const trials::TrialPlan& plan,
                       const trials::CommandOptions& options);

/// What the evaluator left in the trial's folder (docs/reference/logs.md); what is missing or unreadable
/// there stays empty: a result counts without it.
TrialDetails trial_details(const std::string& run_folder, std::size_t number);

/// Lines of progress. Keeps the best so far.
class TrialStory {
 public:
  TrialStory(const MeasuredSetup& setup, search::History history);

  /// "trial 3 of 30  TP1 PP4 …  projected 3590 tokens/s/GPU; surrogate: most expected gain"
  std::string began(const search::TrialRequest& request, const search::Decision& decision) const;
  /// "  ok: 3512 tokens/s/GPU, -2.2 % against the projection; best so far 3550 (trial 2)"
  std::string ended(const search::TrialRequest& request, const search::TrialResult& result);

 private:
  std::string best_so_far() const;

  const MeasuredSetup& setup_;
  search::History history_;
};

}  // namespace sextant::tuner
