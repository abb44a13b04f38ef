// ${VAR} and ${VAR:default} in scalars, as AMD-AGI/Primus workloads have them.
#include <fmt/format.h>

#include <algorithm>

#include "config/document.h"
#include "config/scalar.h"

namespace sextant::config {
namespace {

using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

[[noreturn]] void fail(const Node& node, const std::string& message) {
  throw base::UserError(node.position, node.path, message);
}

bool is_variable_name(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  const auto may_follow = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && is_letter(name[0]) && std::ranges::all_of(name, may_follow);
}

// The value of what stands between "${" and "}".
std::string value_of(std::string_view reference, const Node& node, const Lookup& lookup) {
  const std::size_t colon = reference.find(':');
  const std::string name(reference.substr(0, colon));
  if (!is_variable_name(name)) {
    fail(node, fmt::format("\"${{{}}}\" is no variable; only ${{VAR}} and ${{VAR:default}} are understood",
                           reference));
  }
  if (const std::optional<std::string> value = lookup(name)) return *value;
  if (colon == std::string_view::npos) {
    fail(node, fmt::format("the environment variable {0} is not set and has no default; set it or write "
                           "${{{0}:default}}",
                           name));
  }
  return std::string(reference.substr(colon + 1));
}

std::string substituted(const Node& node, const Lookup& lookup) {
  std::string_view rest = node.text;
  std::string result;
  while (true) {
    const std::size_t start = rest.find("${");
    result += rest.substr(0, start);
    if (start == std::string_view::npos) return result;
    rest.remove_prefix(start + 2);
    const std::size_t end = rest.find('}');
    if (end == std::string_view::npos) fail(node, "\"${\" is not closed by \"}\"");
    const std::string_view reference = rest.substr(0, end);
    if (reference.find("${") != std::string_view::npos) {
      fail(node,
           fmt::format("variables inside variables (\"${{{}}}...\") are not supported; write the inner one's "
                       "value",
                       reference));
    }
    result += value_of(reference, node, lookup);
    rest.remove_prefix(end + 1);
  }
}

}  // namespace

void substitute_variables(Node& node, const Lookup& lookup) {
  for (Node& item : node.items) substitute_variables(item, lookup);
  for (auto& [key, value] : node.entries) substitute_variables(value, lookup);
  if (node.kind != Node::Kind::kScalar || node.text.find("${") == std::string::npos) return;
  node.text = substituted(node, lookup);
  if (!node.quoted && is_null_word(node.text)) {
    node.kind = Node::Kind::kNull;
    node.text.clear();
  }
}

}  // namespace sextant::config
