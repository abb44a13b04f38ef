// A recorded search again, without evaluators and without network: does the planner still take the same
// decisions?
//
// Each decision is a pure function of the planner's inputs, the trials finished before it and the budget. All
// three are in the journal, so the planner is asked again at every recorded decision, and the two lists are
// compared byte for byte. Where they part, the program or its inputs are not what they were; `changes` says
// what differs.
#pragma once

#include <string>
#include <vector>

#include "journal/journal.h"
#include "search/planner.h"
#include "search/prior.h"

namespace sextant::tuner {

struct Replay {
  std::string recorded;      ///< the decision list of the journal (journal/export.h)
  std::string replayed;      ///< the one of this program
  std::string divergence{};  ///< the first decision that differs, in words; empty when the lists are equal
  bool same() const { return recorded == replayed; }
};

/// `planner` must be made as the recorded run's was: from the same inputs, options and seed. `objective` is
/// the quantity of the run's objectives. Throws base::UserError when the trials are of another space, and
/// what the planner throws.
Replay replay(const journal::Reader& reader, const std::string& path, const search::Prior& prior,
              search::Planner& planner, const std::string& objective);

/// What differs between a recorded run and the same run as it would be recorded now, one sentence each:
/// program, seed, arguments, inputs with the first line that is not the same.
std::vector<std::string> changes(const journal::Run& recorded, const journal::Run& now);

}  // namespace sextant::tuner
