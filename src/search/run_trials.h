// The loop of a measured search: decide, record, run, record, and again until the budget is spent.
//
// Every step is durable before the next begins: the recorder returns only when what it was told would survive
// the loss of this process. Whatever happens, at most the trial in progress is lost, and its decision follows
// again from the history.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "search/planner.h"
#include "search/prior.h"
#include "search/trial.h"

namespace sextant::search {

/// True once somebody wants the search to end. Asked from the thread that called run_trials, often.
using StopRequest = std::function<bool()>;

struct TrialRequest {
  std::size_t number = 0;  ///< trials finished before this one, in this search
  Point point;
  std::size_t repeat = 0;  ///< earlier trials of the same point
  double time_limit_s = std::numeric_limits<double>::infinity();
};

/// Runs candidates on whatever is expensive.
class TrialEvaluator {
 public:
  virtual ~TrialEvaluator() = default;

  /// Runs one trial to its end. A trial that breaks is a result, not an exception; what throws ends the
  /// search. Must ask `stop` at least every 0.2 s and soon after it says yes return kInterrupted; must return
  /// kTimedOut soon after the time limit. In either case nothing of the trial may be left running.
  virtual TrialResult run(const TrialRequest& request, const StopRequest& stop) = 0;
};

/// Keeps what happened. Each function returns when its record is durable, and throws when it cannot be.
class Recorder {
 public:
  virtual ~Recorder() = default;

  /// A decision, before anything is done about it; `number` as in TrialRequest.
  virtual void decided(std::size_t number, const Decision& decision) = 0;
  virtual void began(const TrialRequest& request) = 0;
  /// Not called for a trial that a stop request interrupted: it is as if it had never begun.
  virtual void ended(const TrialRequest& request, const TrialResult& result) = 0;
  virtual void noted(const std::string& text) = 0;
};

enum class StopReason {
  kTrials,       ///< the budget of trials is spent
  kPrice,        ///< the budget of time or money is spent
  kPlanner,      ///< the planner sees nothing worth a trial
  kInterrupted,  ///< somebody asked
  kOutside,      ///< trials no longer start, or nodes keep failing
};

/// "trials", "price", "planner", "interrupted", "outside".
std::string_view word(StopReason reason);

struct TrialRun {
  History history;  ///< the given one and what was added
  StopReason stopped = StopReason::kTrials;
  std::string message;  ///< one sentence for people
};

/// Runs trials until something of StopReason happens. `history` is what an earlier, interrupted run of the
/// same search has recorded; it counts against the budget. Results that contradict their own description (a
/// kOk without a finite positive objective) are recorded as kNotANumber. Exceptions of evaluator and recorder
/// pass through.
TrialRun run_trials(Planner& planner, TrialEvaluator& evaluator, Recorder& recorder,
                    const TrialBudget& budget, const StopRequest& stop, History history = {});

/// Answers from recorded trials, for replaying: the i-th request gets the i-th result, if it is for the same
/// point and repeat; otherwise, and after the last, base::UserError says where the search diverges.
class RecordedEvaluator : public TrialEvaluator {
 public:
  /// Both must outlive the evaluator.
  RecordedEvaluator(const Space& space, const History& recorded) : space_(space), recorded_(recorded) {}
  TrialResult run(const TrialRequest& request, const StopRequest& stop) override;

 private:
  const Space& space_;
  const History& recorded_;
};

}  // namespace sextant::search
