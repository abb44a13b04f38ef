// Looks for JSON by its brackets: from each opening bracket the matching closing one is sought, strings
// passed over, and what lies between must parse. Fences need no treatment of their own, they are just more
// text around it; but brackets in prose ("[see below]") must not count, so only what parses is a candidate,
// and a bracket that leads to nothing is skipped. Linear for text that holds one value; a hostile text of
// many opening brackets is bounded by kMostStarts.
#include "llm/json_text.h"

#include <fmt/core.h>

#include <optional>
#include <set>
#include <vector>

#include "base/text.h"
#include "llm/json.h"

namespace sextant::llm {
namespace {

constexpr int kMostStarts = 200;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

struct Read {
  Json json{};
  std::string error{};
  bool twice = false;  ///< a key occurs twice in one object
};

Read read(std::string_view text) {
  Read result;
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      result.twice = true;
    return true;
  };
  try {
    result.json = Json::parse(text, watch);
  } catch (const Json::exception& error) {
    result.error = error.what();
    result.json = Json(Json::value_t::discarded);
  }
  return result;
}

/// The end of the value that begins with the bracket at `begin`: one past its closing bracket. Empty: it does
/// not close.
std::optional<std::size_t> end_of_value(std::string_view text, std::size_t begin) {
  std::string open;
  bool in_string = false;
  for (std::size_t at = begin; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      open += c;
    } else if (c == '}' || c == ']') {
      if (open.empty() || open.back() != (c == '}' ? '{' : '[')) return std::nullopt;
      open.pop_back();
      if (open.empty()) return at + 1;
    }
  }
  return std::nullopt;
}

/// Reasoning that a server has left in the text.
std::string_view without_thoughts(std::string_view text) {
  if (!text.starts_with("<think>")) return text;
  const std::size_t end = text.find("</think>");
  return end == std::string_view::npos ? text : base::trim(text.substr(end + 8));
}

bool is_structure(const Json& json) { return json.is_object() || json.is_array(); }

struct Candidates {
  std::vector<std::string> texts{};
  std::vector<Json> values{};
  std::string first_error{};
  bool twice = false;
  bool unclosed = false;  ///< an opening brace without its closing one
};

Candidates candidates_in(std::string_view text) {
  Candidates found;
  int starts = 0;
  for (std::size_t at = text.find_first_of("{["); at != std::string_view::npos && starts < kMostStarts;
       at = text.find_first_of("{[", at)) {
    ++starts;
    const auto end = end_of_value(text, at);
    const Read value = end ? read(text.substr(at, *end - at)) : Read{.json = Json(Json::value_t::discarded)};
    if (!value.json.is_discarded()) {
      found.texts.emplace_back(text.substr(at, *end - at));
      found.values.push_back(value.json);
      found.twice = found.twice || value.twice;
      at = *end;
      continue;
    }
    if (text[at] == '{') {
      if (!end) {  // what lies within an unfinished value is no answer
        found.unclosed = true;
        return found;
      }
      if (found.first_error.empty()) found.first_error = value.error;
      at = *end;  // nor within a broken one
      continue;
    }
    ++at;
  }
  return found;
}

/// "…: syntax error while parsing value - …" without nlohmann's own prefix.
std::string short_error(const std::string& error) {
  const std::size_t colon = error.find("parse error");
  return colon == std::string::npos ? error : error.substr(colon);
}

}  // namespace

FoundJson find_json(std::string_view text) {
  text = base::trim(text);
  if (text.starts_with(kByteOrderMark)) text = base::trim(text.substr(kByteOrderMark.size()));
  text = without_thoughts(text);
  if (text.empty()) return {.problem = "the answer is empty; answer with one JSON object"};
  if (const Read whole = read(text); is_structure(whole.json) && !whole.twice)
    return {.json = std::string(text)};
  Candidates found = candidates_in(text);
  if (found.unclosed) {
    return {.problem = "the JSON ends too early; answer with the whole JSON object, shorter if need be",
            .truncated = true};
  }
  if (found.twice) return {.problem = "a key occurs twice in one object; give each key once"};
  // Objects are answers; a list beside them, such as "[1]" in prose, is not.
  std::erase_if(found.values, [&, any_object = std::ranges::any_of(found.values, [](const Json& v) {
                                    return v.is_object();
                                  })](const Json& value) { return any_object && !value.is_object(); });
  std::erase_if(found.texts, [&, any_object = std::ranges::any_of(found.values, [](const Json& v) {
                                   return v.is_object();
                                 })](const std::string& json) { return any_object && json.front() != '{'; });
  if (!found.first_error.empty()) {
    return {.problem = fmt::format("not valid JSON ({}); answer with one JSON object",
                                   short_error(found.first_error))};
  }
  if (found.values.empty())
    return {.problem = "there is no JSON in the answer; answer with one JSON object and nothing else"};
  for (const Json& value : found.values) {
    if (value != found.values.front()) {
      return {.problem =
                  fmt::format("{} different JSON values; answer with exactly one", found.values.size())};
    }
  }
  return {.json = found.texts.front()};
}

}  // namespace sextant::llm
