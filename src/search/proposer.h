// Whoever proposes points from outside: a language model, a script, a colleague.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "search/trial.h"

namespace sextant::search {

struct Proposal {
  Point point;            ///< of the space's shape; need not be legal
  std::string rationale;  ///< one sentence for people; may be empty
};

/// A proposal that came back. Costs no trial.
struct Refusal {
  Proposal proposal;
  std::string reason;          ///< the rules it breaks, or which trial it repeats
  std::vector<Point> nearest;  ///< legal points close to it that were not tried
};

struct ProposalRequest {
  const History& history;         ///< trials so far
  std::vector<Refusal> rejected;  ///< since the last request
  std::size_t wanted = 1;         ///< more are welcome, fewer too
};

struct ProposalAnswer {
  std::vector<Proposal> ranked;  ///< best first
  std::string failure;           ///< why there will never be another answer; empty: there may be
};

class Proposer {
 public:
  virtual ~Proposer() = default;

  /// "llm" and such: the planner's name in decisions.
  virtual std::string_view name() const = 0;

  /// Forgets everything: the next request is the first of a search.
  virtual void begin() {}

  /// Must give the same answer to the same sequence of requests: a resumed search asks again from the first.
  virtual ProposalAnswer propose(const ProposalRequest& request) = 0;
};

}  // namespace sextant::search
