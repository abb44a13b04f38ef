// What a language model is told before it proposes layouts, and the form in which it answers.
//
// Everything that bears on the choice is in one JSON document: the model, the cluster, every knob with its
// values, what each change from the best layout does by projection and by measurement, where the best layout
// loses its time, every trial with every knob, and what is left of the budget. The text depends on nothing
// but its inputs, so a resumed search sends the same requests.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "search/planner.h"
#include "search/proposer.h"
#include "tuner/measured_setup.h"

namespace sextant::tuner {

/// How many notes a model may keep for its later self.
inline constexpr std::size_t kMostNotes = 40;

/// A proposal that names things which do not exist, or a layout that may not be tried.
struct RefusedProposal {
  std::string proposal;  ///< the layout, or what the model wrote
  std::string reason;
  std::vector<std::string> nearest{};
};

struct BriefInputs {
  const MeasuredSetup& setup;
  const search::History& history;
  std::vector<std::string> hints{};  ///< the user's
  std::vector<std::string> notes{};  ///< the model's own, from earlier
  std::vector<RefusedProposal> refused{};
  std::size_t wanted = 1;
  std::size_t trials_left = 0;
};

std::string system_text();
std::string brief_text(const BriefInputs& inputs);

/// JSON schema of the answer: rationale, hypotheses, candidates, notes, stop.
const std::string& answer_schema();
/// JSON schema of a layout as the model describes it: {from, changes: [{axis, value}]}.
const std::string& layout_schema();
/// JSON schema of one candidate: a layout and `why`.
const std::string& candidate_schema();

/// The point that "from" (own, best, trial N) and "changes" of a candidate describe; else why there is none,
/// in words that the model can act on. `json` matches layout_schema() or candidate_schema().
struct NamedPoint {
  std::optional<search::Point> point{};
  std::string problem{};
};
NamedPoint named_point(const MeasuredSetup& setup, const search::History& history, const std::string& json);

/// The trial with the best result, else the workload's own layout, else the candidate projected fastest.
search::Point base_point(const MeasuredSetup& setup, const search::History& history);

}  // namespace sextant::tuner
