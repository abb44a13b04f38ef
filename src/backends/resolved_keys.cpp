#include "backends/resolved_keys.h"

#include <fmt/format.h>

#include <charconv>

#include "base/text.h"

namespace sextant::backends {
namespace {

config::Node scalar(const config::Node& mapping, std::string_view key, std::string text) {
  config::Node node;
  node.kind = config::Node::Kind::kScalar;
  node.text = std::move(text);
  node.path = std::string(key);
  if (const config::Node* old = mapping.find(key)) {
    node.position = old->position;
    node.path = old->path;
  }
  return node;
}

}  // namespace

const config::Node* ResolvedKeys::find(std::string_view key) const {
  const config::Node* node = mapping_.find_set(key);
  // Python's spelling of null, as command lines and ${VAR:None} carry it.
  if (node != nullptr && node->kind == config::Node::Kind::kScalar && node->text == "None") return nullptr;
  return node;
}

std::int64_t ResolvedKeys::integer(std::string_view key, std::int64_t fallback) const {
  const config::Node* node = find(key);
  return node == nullptr ? fallback : config::as_integer(*node);
}

double ResolvedKeys::number(std::string_view key, double fallback) const {
  const config::Node* node = find(key);
  return node == nullptr ? fallback : config::as_number(*node);
}

bool ResolvedKeys::boolean(std::string_view key, bool fallback) const {
  const config::Node* node = find(key);
  if (node == nullptr) return fallback;
  if (node->kind == config::Node::Kind::kScalar && !node->quoted) {
    if (node->text == "0") return false;
    if (node->text == "1") return true;
  }
  return config::as_boolean(*node, yaml11_);
}

std::string ResolvedKeys::text(std::string_view key, std::string_view fallback) const {
  const config::Node* node = find(key);
  return node == nullptr ? std::string(fallback) : config::as_text(*node);
}

std::optional<std::int64_t> ResolvedKeys::integer_if_set(std::string_view key) const {
  const config::Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  return config::as_integer(*node);
}

int ResolvedKeys::positive(std::string_view key, int fallback, int maximum) const {
  const std::int64_t value = integer(key, fallback);
  if (value < 1 || value > maximum) {
    refuse(key, fmt::format("expected a whole number from 1 to {}, found {}", maximum, value));
  }
  return static_cast<int>(value);
}

std::vector<std::int64_t> ResolvedKeys::integers(std::string_view key) const {
  const config::Node* node = find(key);
  std::vector<std::int64_t> result;
  if (node == nullptr) return result;
  if (node->kind == config::Node::Kind::kSequence) {
    for (const config::Node& item : node->items) result.push_back(config::as_integer(item));
    return result;
  }
  const std::string text = config::as_text(*node);
  std::string_view list = base::trim(text);
  if (list.starts_with('[') != list.ends_with(']') || list.starts_with('(') != list.ends_with(')')) {
    refuse(key, fmt::format("expected whole numbers separated by commas, found \"{}\"", text));
  }
  if (list.starts_with('[') || list.starts_with('(')) list = list.substr(1, list.size() - 2);
  if (base::trim(list).empty()) return result;
  for (const std::string& part : base::split(list, ',')) {
    const std::string_view digits = base::trim(part);
    if (digits.empty()) continue;  // a trailing comma
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      refuse(key, fmt::format("expected whole numbers separated by commas, found \"{}\"", digits));
    }
    result.push_back(value);
  }
  return result;
}

std::vector<std::string> ResolvedKeys::texts(std::string_view key) const {
  const config::Node* node = find(key);
  std::vector<std::string> result;
  if (node == nullptr) return result;
  if (node->kind == config::Node::Kind::kSequence) {
    for (const config::Node& item : node->items) result.push_back(config::as_text(item));
    return result;
  }
  const std::string text = config::as_text(*node);
  std::string_view list = base::trim(text);
  if (list.size() >= 2 && list.starts_with('[') && list.ends_with(']'))
    list = list.substr(1, list.size() - 2);
  for (const std::string& part : base::split(list, ',')) {
    if (!base::trim(part).empty()) result.emplace_back(base::trim(part));
  }
  return result;
}

void ResolvedKeys::refuse(std::string_view key, const std::string& what_why_fix) const {
  const config::Node* node = mapping_.find(key);
  if (node == nullptr) throw base::UserError(mapping_.position, std::string(key), what_why_fix);
  throw base::UserError(node->position, node->path.empty() ? std::string(key) : node->path, what_why_fix);
}

void set_text(config::Node& mapping, std::string_view key, const std::string& text) {
  config::set_entry(mapping, key, scalar(mapping, key, text));
}

void set_integer(config::Node& mapping, std::string_view key, std::int64_t value) {
  set_text(mapping, key, std::to_string(value));
}

void set_number(config::Node& mapping, std::string_view key, double value) {
  // With a point or a signed exponent, so that YAML 1.1 loaders take it for a number too.
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  const std::size_t exponent = text.find('e');
  if (exponent != std::string::npos && text.find('.') == std::string::npos) text.insert(exponent, ".0");
  set_text(mapping, key, text);
}

void set_boolean(config::Node& mapping, std::string_view key, bool value) {
  set_text(mapping, key, value ? "true" : "false");
}

void set_null(config::Node& mapping, std::string_view key) {
  config::Node node = scalar(mapping, key, "");
  node.kind = config::Node::Kind::kNull;
  config::set_entry(mapping, key, std::move(node));
}

}  // namespace sextant::backends
