// The planning commands' JSON documents as text for people.
//
// Everything shown is taken from the document that --json prints, so the two can never disagree.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report/table.h"

namespace sextant::report {

using Json = nlohmann::ordered_json;

std::string inspection_text(const Json& document, const Style& style);
std::string projection_text(const Json& document, const Style& style);
std::string comparison_text(const Json& document, const Style& style);
std::string list_text(const Json& rows, const Style& style);

/// One line naming a layout: "TP1 PP4 VPP2 EP8 CP1 DP8 · MBS1 GBS128 · interleaved · no recompute · alltoall
/// · bf16".
std::string layout_line(const Json& layout);

/// Whether a projection's peak fits: inside the margin, on the card only, or not at all.
std::string fit_text(const Json& memory, const Style& style);
/// Memory of one projection: a row a stage with a bar against the limit.
std::string memory_text(const Json& memory, const Style& style);
/// Time of one projection: the terms that add up to the step, then operations.
std::string time_text(const Json& time, const Style& style);

}  // namespace sextant::report
