// Short names: one word for every knob of a layout, the same for every backend.
//
// `--set tp=4`, `--pin schedule=zb-h1`, `--open recompute`, axes of spaces and Sextant's own YAML all speak
// them. Each sets exactly its own field (docs/reference/knobs.md has the list that `knob_summaries` gives);
// what a framework makes of the combination is for rules.h. `short_names` and `set_knob` are declared in
// workload.h.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "parallel/layout.h"

namespace sextant::backends {

struct KnobSummary {
  std::string_view name;     ///< "tp"
  std::string_view values;   ///< "integer ≥ 1", "none | selective | full | …"
  std::string_view meaning;  ///< one line
};

/// All knobs, in the order of docs and help.
std::span<const KnobSummary> knob_summaries();

/// The value of a knob in the notation that set_knob reads: setting it again changes nothing.
/// Throws base::UserError for an unknown name.
std::string knob_value(const parallel::Layout& layout, const std::string& name);

}  // namespace sextant::backends
