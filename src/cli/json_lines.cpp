#include "cli/json_lines.h"

#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace sextant::cli {
namespace {

std::string detail_of(const std::exception& error) {
  // "[json.exception…] parse error at line 1, column 2: …"
  const std::string message = error.what();
  const std::size_t detail = message.starts_with('[') ? message.find("] ") : std::string::npos;
  return detail == std::string::npos ? message : message.substr(detail + 2);
}

Json answer_line(const std::string& line, const std::function<Json(const Json&)>& answer) {
  try {
    const Json request = Json::parse(line);
    if (!request.is_object()) return {{"error", "a request must be a JSON object"}};
    return answer(request);
  } catch (const base::UserError& error) {
    return {{"error", error.what()}};
  } catch (const Json::exception& error) {
    return {{"error", detail_of(error)}};
  }
}

}  // namespace

int answer_lines(std::istream& input, const std::function<Json(const Json&)>& answer) {
  std::string line;
  while (std::getline(input, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json reply = answer_line(line, answer);
    fmt::print("{}\n", reply.dump(-1, ' ', true, Json::error_handler_t::replace));
    std::fflush(stdout);
  }
  return kDone;
}

std::string required_text(const Json& request, const char* key) {
  const auto found = request.find(key);
  if (found == request.end() || !found->is_string()) throw base::UserError({}, key, "must be a string");
  return found->get<std::string>();
}

}  // namespace sextant::cli
