// A pipeline schedule as lines of text: one row a stage, time from left to right, and below each row how many
// chunk passes are alive.
#pragma once

#include <string>

#include "report/schedule_rows.h"
#include "report/table.h"

namespace sextant::report {

struct DrawingOptions {
  int chunks = 1;      ///< V of the schedule
  bool ascii = false;  ///< only ASCII characters
};

/// Whether the locale of the environment (LC_ALL, LC_CTYPE, LANG: the first that is set) is a UTF-8 one.
bool locale_is_utf8();

/// The drawing with its legend, at most `style.width` columns wide (60 at least). Where the times allow it a
/// step begins at a column of its own; where steps are shorter than a column, a column shows what fills most
/// of it, and the legend says how long it is. Kinds differ by letter and, with colour, by hue; chunks by case
/// and shade.
std::string schedule_drawing(Operations operations, const DrawingOptions& options, const Style& style);

}  // namespace sextant::report
