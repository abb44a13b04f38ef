// The planner in which a proposer suggests and the surrogate is its conscience.
//
// Problem. A proposer may know what no trial of this run has shown yet: then waiting for the statistics
// wastes trials. Or it knows nothing: then each of its trials is wasted. Nobody can tell which before it has
// been tried.
//
// Idea. Before each trial both name a candidate, and the surrogate says what it expects of both. A proposal
// that promises as much as the surrogate's own candidate costs nothing and is run. One that promises less
// stakes the proposer's credit: if its trial becomes the best so far and does better than the surrogate
// expected of the candidate that it displaced, both by more than chance, the credit stands; if not, it is
// lost, and from then on only proposals are run that promise as much. The first trial is the surrogate's: it
// teaches most where the projection is highest. Until
// something has run, finding what runs comes first: credit then buys a trial only of what runs about as
// probably as the surrogate's own candidate. So a proposer that is always wrong costs one trial, and one
// that is right is followed. Not even credit buys a trial of what is projected hopelessly slower: errors of
// the projection between layouts of one model have bounds.
//
// Proposals that are illegal, projected not to fit, or tried before come back with the reason and the nearest
// legal points; they cost no trial, and only so many are taken.
//
// Cost: one decision of the surrogate and one opinion more a trial. Deterministic if the proposer is, and if
// it is asked after every trial that it decided on (search/step_by_step.h sees to that when a search is
// resumed); trials that others decided on may come in between.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "search/planner.h"
#include "search/prior.h"
#include "search/proposer.h"
#include "search/surrogate.h"

namespace sextant::search {

struct GuidedOptions {
  SurrogateOptions surrogate{};
  std::size_t wanted = 6;            ///< proposals a request
  std::size_t patience = 3;          ///< trials after which proposals that deserved none are asked for anew
  std::size_t most_requests = 12;    ///< of the whole search
  std::size_t most_rejections = 24;  ///< of the whole search
  int first_credit = 1;              ///< how many trials it may lose
  /// A proposal's trial has won when it is better than expected by more than this share: trials of one layout
  /// differ by about as much (docs/accuracy.md).
  double winning_share = 0.02;
  /// Until something has run: a proposal must run with this share of the probability of the surrogate's own.
  double running_share = 0.65;
  /// A proposal that is expected to reach less than this share of the surrogate's own candidate is passed
  /// over: the largest errors of the projection between layouts of one model are about 30 %
  /// (docs/accuracy.md).
  double plausible_share = 0.7;
};

class Guided : public Planner {
 public:
  /// `prior` and `proposer` must outlive the planner. `note` is told, once, why the proposer is not asked any
  /// more; may be empty.
  Guided(const Prior& prior, Proposer& proposer, GuidedOptions options,
         std::function<void(const std::string&)> note = {});

  std::string_view name() const override { return "guided"; }
  Decision next(const History& history, const TrialBudget& budget) override;

  /// Of the same trials: for what it would recommend.
  Surrogate& surrogate() { return surrogate_; }
  /// How many trials against the surrogate's judgement it may still lose.
  int credit() const { return state_.credit; }
  /// Why the proposer is not asked any more; empty while it is.
  const std::string& silent_because() const { return state_.silent_because; }

 private:
  /// What a proposal's trial is judged by.
  struct Wager {
    double to_beat = 0;  ///< the best so far, and what the surrogate expected of its own candidate
  };
  /// All that depends on the history; forgotten when one is asked for that does not continue it.
  struct State {
    History history;
    std::optional<Decision> decision;  ///< that follows `history`
    std::optional<Wager> wager;        ///< of `decision`, where it follows a proposal
    std::deque<Proposal> queue;
    std::vector<Refusal> rejected;  ///< not yet told
    std::size_t requests = 0;
    std::size_t asked_after = 0;  ///< trials before the last request
    std::size_t rejections = 0;
    int credit = 0;
    std::string silent_because;
  };

  void restart();
  const Decision& decide(const TrialBudget& budget);
  void settle(const Trial& trial);
  std::optional<Decision> proposed(const Decision& own);
  std::optional<Decision> from_queue(const Decision& own);
  void ask();
  bool admit(const Proposal& proposal);
  void reject(const Proposal& proposal, std::string reason);
  void drop_tried();
  void silence(std::string why);
  bool deserves_trial(const Prediction& proposal, const Decision& own) const;

  const Prior& prior_;
  Proposer& proposer_;
  GuidedOptions options_;
  std::function<void(const std::string&)> note_;
  Surrogate surrogate_;
  State state_;
};

}  // namespace sextant::search
