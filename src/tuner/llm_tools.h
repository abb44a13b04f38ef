// What a language model may ask for while it thinks of proposals. Everything is free: nothing here runs a
// trial; `evaluate` only puts a candidate forward.
#pragma once

#include <string>
#include <vector>

#include "llm/tool_loop.h"
#include "search/proposer.h"
#include "tuner/measured_setup.h"

namespace sextant::tuner {

/// What the tools read and what they leave behind. Must outlive the handlers.
struct ToolDesk {
  const MeasuredSetup& setup;
  const search::History& history;
  std::vector<std::string>& notes;              ///< the model's own, kept for later
  std::vector<search::Proposal> put_forward{};  ///< by `evaluate`, in order
  bool stop = false;                            ///< the model wants no more trials
};

/// what_if, evaluate_memory, history, best, effect_of, explain, note, evaluate, stop.
std::vector<llm::ToolHandler> planning_tools(ToolDesk& desk);

}  // namespace sextant::tuner
