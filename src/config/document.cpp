#include "config/document.h"

#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "config/key_path.h"
#include "config/scalar.h"

namespace sextant::config {
namespace {

void set_position(Node& node, const base::SourcePosition& position) {
  node.position = position;
  for (Node& item : node.items) set_position(item, position);
  for (auto& [key, value] : node.entries) set_position(value, position);
}

// Only quotes and `[` ask for YAML's grammar: any other value is plain text to its end, so that characters
// which mean something to YAML (`*`, `|`, `#`, `: `) need no second level of quoting on a command line.
Node assigned_value(std::string_view text, const base::SourcePosition& position) {
  if (text.starts_with('"') || text.starts_with('\'') || text.starts_with('[')) {
    try {
      return parse_yaml(text, position.file);
    } catch (const base::UserError& error) {
      throw base::UserError(position, error.key_path(), error.message());
    }
  }
  Node node;
  if (is_null_word(text)) return node;
  node.kind = Node::Kind::kScalar;
  node.text = text;
  return node;
}

}  // namespace

Node read_document(const std::string& path) {
  const std::string text = base::read_file(path);
  return path.ends_with(".json") ? parse_json(text, path) : parse_yaml(text, path);
}

void merge_into(Node& base, const Node& overlay) {
  if (!base.is_mapping() || !overlay.is_mapping()) {
    base = overlay;
    return;
  }
  base.position = overlay.position;
  for (const auto& [key, value] : overlay.entries) {
    if (Node* earlier = base.find(key)) {
      merge_into(*earlier, value);
    } else {
      base.entries.emplace_back(key, value);
    }
  }
}

std::pair<std::string, Node> parse_assignment(std::string_view assignment) {
  const base::SourcePosition position{"--set " + std::string(assignment)};
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    throw base::UserError(position, {}, "has no \"=\"; write --set key=value");
  }
  const std::string key(base::trim(assignment.substr(0, equals)));
  if (key.empty()) throw base::UserError(position, {}, "has no key before \"=\"; write --set key=value");
  Node value = assigned_value(base::trim(assignment.substr(equals + 1)), position);
  set_position(value, position);
  assign_paths(value, key);
  return {key, std::move(value)};
}

}  // namespace sextant::config
