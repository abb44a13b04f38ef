// A pipeline schedule as a picture: a timeline for each stage and, under it, how many chunk passes are alive.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report/schedule_rows.h"

namespace sextant::report {

using Json = nlohmann::ordered_json;

/// A self-contained SVG file without scripts; the same input gives the same bytes. `document` is the JSON of
/// a legal schedule without its operations, which come beside it. The time axis ends at `time_axis_s`, or
/// with the schedule where that is later.
///
/// Boxes carry the number of their micro-batch where it fits. Where a stage has more steps than half the
/// pixels of its timeline, or the picture more than 50,000, no boxes are drawn: columns of a few pixels show
/// which share of their time each kind takes. So a file has some tens of bytes a step and at most a few
/// megabytes.
std::string schedule_svg(const Json& document, Operations operations, double time_axis_s);

}  // namespace sextant::report
