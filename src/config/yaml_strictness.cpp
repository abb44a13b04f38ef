#include "config/yaml_strictness.h"

#include <algorithm>

namespace sextant::config {
namespace {

// `text` from the scalar itself on, without the tag, anchor, white space and comments before it.
std::string_view skip_properties(std::string_view text) {
  while (!text.empty()) {
    std::size_t length = 0;
    if (text[0] == '&' || text[0] == '!') {
      length = text.find_first_of(" \t\n");
    } else if (text[0] == '#') {
      length = text.find('\n');
    } else {
      length = std::min(text.find_first_not_of(" \t\n"), text.size());
      if (length == 0) return text;
    }
    text.remove_prefix(std::min(length, text.size()));
  }
  return text;
}

}  // namespace

bool opens_unclosed_quote(std::string_view text, std::size_t offset) {
  const std::string_view scalar = skip_properties(text.substr(std::min(offset, text.size())));
  if (!scalar.starts_with('"') && !scalar.starts_with('\'')) return false;
  const char quote = scalar[0];
  for (std::size_t i = 1; i < scalar.size(); ++i) {
    const bool doubled = quote == '\'' && scalar.substr(i).starts_with("''");
    if (scalar[i] == quote && !doubled) return false;
    if (doubled || (scalar[i] == '\\' && quote == '"')) ++i;
  }
  return true;
}

bool is_empty_flow_item(std::string_view text, std::size_t offset) {
  return offset >= text.size() || text[offset] == ',' || text[offset] == ']';
}

bool begins_its_line(std::string_view text, std::size_t offset) {
  const std::size_t before = text.substr(0, offset).find_last_not_of(" \t");
  return before == std::string_view::npos || text[before] == '\n';
}

bool is_explicit_key(std::string_view text, std::size_t offset) {
  const std::size_t before = text.substr(0, offset).find_last_not_of(" \t\n");
  return before != std::string_view::npos && text[before] == '?';
}

}  // namespace sextant::config
