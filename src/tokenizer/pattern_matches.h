// A pattern of a tokenizer file: a regular expression, or a text that is meant literally.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "tokenizer/split_pattern.h"

namespace sextant::tokenizer {

using Pattern = std::variant<std::string, SplitPattern>;

/// The first non-empty match that begins at or after `from`, as [begin, end).
inline std::optional<std::pair<std::size_t, std::size_t>> next_match(const Pattern& pattern,
                                                                     std::string_view text,
                                                                     std::size_t from) {
  if (const auto* expression = std::get_if<SplitPattern>(&pattern)) return expression->find(text, from);
  const std::string& literal = std::get<std::string>(pattern);
  const std::size_t at = literal.empty() ? std::string_view::npos : text.find(literal, from);
  if (at == std::string_view::npos) return std::nullopt;
  return std::pair(at, at + literal.size());
}

}  // namespace sextant::tokenizer
