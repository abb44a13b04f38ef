// A journal in forms that other programs read.
#pragma once

#include <map>
#include <span>
#include <string>

#include "journal/records.h"

namespace sextant::journal {

/// The decisions of a run as text, for comparing two runs byte for byte: one line each, by number (of several
/// with one number the last), without times, hosts or sequence numbers.
///
///   number <tab> planner <tab> candidate <tab> repeat <tab> predicted <tab> low <tab> high <tab> probability
///   <tab> gain <tab> reason
///
/// Numbers have as many digits as give back the same double; "-" where there is none, and for the candidate
/// where the search ends. Tab, line end, carriage return and backslash within a text are written \t, \n, \r
/// and \\. The first line names the form and its version. `entries` are all of the journal.
std::string decision_list(std::span<const Entry> entries);

/// Everything as one JSON document: `{"schema", "run": {…, "inputs": […]}, "records": [{"sequence",
/// "written_s", "kind", …}]}`. NaN and infinities are the texts "NaN", "Infinity", "-Infinity"; inputs that
/// are not UTF-8 are "base64", other texts have U+FFFD in place of what is not.
std::string to_json(const Run& run, std::span<const Entry> entries);

/// Everything as CSV (RFC 4180, bytes as they are), one file a table: "candidate.csv". Absent values are
/// empty.
std::map<std::string, std::string> to_csv(const Run& run, std::span<const Entry> entries);

}  // namespace sextant::journal
