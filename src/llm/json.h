// JSON as providers send it: reads that never throw, whatever the type. For .cpp files only.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace sextant::llm {

using Json = nlohmann::ordered_json;

/// The document, or a discarded value (is_discarded()) when it is none.
inline Json parse_or_discarded(std::string_view text) { return Json::parse(text, nullptr, false); }

/// One line; bytes that are no UTF-8 become U+FFFD.
inline std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The member, or null when it is absent or `json` is no object.
inline const Json& at(const Json& json, std::string_view key) {
  static const Json kNull;
  if (!json.is_object()) return kNull;
  const auto found = json.find(key);
  return found == json.end() ? kNull : *found;
}

/// The string member, or "".
inline std::string text_at(const Json& json, std::string_view key) {
  const Json& value = at(json, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// The number member as a count, or 0; negative and absurd values are 0.
inline std::int64_t count_at(const Json& json, std::string_view key) {
  const Json& value = at(json, key);
  if (!value.is_number()) return 0;
  const double number = value.get<double>();
  return number > 0 && number < 1e15 ? static_cast<std::int64_t>(number) : 0;
}

/// The text of a message in any of its forms: a string, null, or a list of parts.
std::string text_of_content(const Json& content);

}  // namespace sextant::llm
