// The answer of `sextant schedule` for people: totals, a table of the stages, the drawing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report/schedule_drawing.h"

namespace sextant::report {

using Json = nlohmann::ordered_json;

/// `document` is the command's JSON without its operations, which come beside it. Where the schedule is not
/// legal, the rule that forbids it.
std::string schedule_text(const Json& document, Operations operations, bool ascii, const Style& style);

/// "zb-v, 4 stages, 2 chunks a stage, 8 micro-batches".
std::string schedule_title(const Json& document);

}  // namespace sextant::report
