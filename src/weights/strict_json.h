// JSON headers without double meanings: nlohmann's parser keeps the last of two equal keys silently; here
// that is an error. Included by .cpp files only.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sextant::weights {

/// Parses `text`; `what` names it in messages ("header"). Throws base::UserError at `position` for bad
/// syntax, a key that an object has twice, and nesting deeper than `deepest`.
template <typename Json>
Json parse_strict_json(std::string_view text, const base::SourcePosition& position, const std::string& what,
                       int deepest) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, typename Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) {
      if (depth >= deepest) {
        throw base::UserError(position, {},
                              fmt::format("its {} is nested deeper than {} levels", what, deepest));
      }
    }
    if (event == Json::parse_event_t::object_start) {
      keys.resize(static_cast<std::size_t>(depth) + 1);
      keys.back().clear();
    }
    if (event == Json::parse_event_t::key) {
      // depth counts the object that the key stands in
      const auto& key = value.template get_ref<const std::string&>();
      if (!keys[static_cast<std::size_t>(depth) - 1].insert(key).second) {
        throw base::UserError(position, key,
                              fmt::format("duplicate key in the {}: it must name each once", what));
      }
    }
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const nlohmann::detail::exception& error) {
    const std::string_view message = error.what();
    const std::size_t detail = message.find(": ");
    throw base::UserError(
        position, {},
        fmt::format("its {} is not valid JSON: {}", what,
                    detail == std::string_view::npos ? message : message.substr(detail + 2)));
  }
}

}  // namespace sextant::weights
