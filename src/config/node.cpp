#include "config/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "config/key_path.h"

namespace sextant::config {

Node::Node() noexcept = default;

const Node* Node::find(std::string_view key) const {
  const auto entry = std::ranges::find(entries, key, &std::pair<std::string, Node>::first);
  return entry == entries.end() ? nullptr : &entry->second;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

const Node* Node::find_set(std::string_view key) const {
  const Node* value = find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void set_entry(Node& mapping, std::string_view key, Node value) {
  if (mapping.is_null()) mapping.kind = Node::Kind::kMapping;
  SEXTANT_CHECK(mapping.is_mapping());
  if (value.path.empty()) assign_paths(value, child_path(mapping.path, key));
  if (Node* earlier = mapping.find(key)) {
    *earlier = std::move(value);
  } else {
    mapping.entries.emplace_back(key, std::move(value));
  }
}

const Node& require(const Node& mapping, std::string_view key) {
  const Node* value = require_mapping(mapping).find_set(key);
  if (value != nullptr) return *value;
  const Node* unset = mapping.find(key);
  throw base::UserError(
      unset != nullptr ? unset->position : mapping.position, child_path(mapping.path, key),
      unset != nullptr ? "is null, but a value is required" : "is missing, but required; add this key");
}

std::int64_t integer_or(const Node& mapping, std::string_view key, std::int64_t fallback) {
  const Node* value = mapping.find_set(key);
  return value == nullptr ? fallback : as_integer(*value);
}

double number_or(const Node& mapping, std::string_view key, double fallback) {
  const Node* value = mapping.find_set(key);
  return value == nullptr ? fallback : as_number(*value);
}

bool boolean_or(const Node& mapping, std::string_view key, bool fallback, bool yaml11) {
  const Node* value = mapping.find_set(key);
  return value == nullptr ? fallback : as_boolean(*value, yaml11);
}

std::string text_or(const Node& mapping, std::string_view key, std::string_view fallback) {
  const Node* value = mapping.find_set(key);
  return value == nullptr ? std::string(fallback) : as_text(*value);
}

void refuse_unknown_keys(const Node& mapping, const std::vector<std::string>& known) {
  for (const auto& [key, value] : mapping.entries) {
    if (std::ranges::find(known, key) != known.end()) continue;
    throw base::UserError(value.position, value.path,
                          fmt::format("unknown key \"{}\"{}", key, base::did_you_mean(key, known)));
  }
}

}  // namespace sextant::config
