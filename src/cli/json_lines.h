// Sessions of one JSON request a line on standard input and one answer a line on standard output.
#pragma once

#include <functional>
#include <istream>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/command.h"

namespace sextant::cli {

/// Reads to the end of input; each answer is flushed. A line that is no JSON object, or for which `answer`
/// throws base::UserError, answers {"error": …} and the next is read. Empty lines are passed over. Returns
/// kDone.
int answer_lines(std::istream& input, const std::function<Json(const Json& request)>& answer);

/// The request's string under `key`. Throws base::UserError when it is missing or something else.
std::string required_text(const Json& request, const char* key);

}  // namespace sextant::cli
