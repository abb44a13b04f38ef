// What every document keeps, whatever bytes it was read from; shared by the fuzz programs of all formats.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "config/document.h"
#include "config/node.h"

namespace sextant::fuzz {

/// Runs `work`; true when it returned, false when it threw a UserError, which must say in which line.
inline bool returns_or_says_where(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const base::UserError& error) {
    SEXTANT_CHECK(!error.position().file.empty());
    SEXTANT_CHECK_GT(error.position().line, 0);
    SEXTANT_CHECK(!error.message().empty());
    return false;
  }
}

/// Every typed read of every node; gives what the reads said, so that two documents can be compared by them.
inline void read_as_everything(const config::Node& node, std::string& transcript) {
  SEXTANT_CHECK_GT(node.position.line, 0);
  SEXTANT_CHECK_GT(node.position.column, 0);
  const auto record = [&](const char* type, const std::function<std::string()>& read) {
    std::string value;
    if (returns_or_says_where([&] { value = read(); })) transcript += type + value + '\n';
  };
  record("path ", [&] { return node.path; });
  record("integer ", [&] { return std::to_string(config::as_integer(node)); });
  record("number ", [&] { return std::to_string(config::as_number(node)); });
  record("boolean ", [&] { return std::to_string(config::as_boolean(node)); });
  record("yaml 1.1 boolean ", [&] { return std::to_string(config::as_boolean(node, true)); });
  record("text ", [&] { return config::as_text(node); });
  record("items ", [&] { return std::to_string(config::require_sequence(node).items.size()); });
  record("entries ", [&] { return std::to_string(config::require_mapping(node).entries.size()); });
  record("known ", [&] {
    config::refuse_unknown_keys(node, {"a", "b"});
    return std::string();
  });
  for (const config::Node& item : node.items) read_as_everything(item, transcript);
  for (const auto& [key, value] : node.entries) {
    SEXTANT_CHECK(node.find(key) == &value);
    read_as_everything(value, transcript);
  }
}

/// Reads, writes and reads again; the second document must answer every read like the first.
inline void check_document(config::Node document) {
  std::string first;
  read_as_everything(document, first);
  const std::string yaml = config::to_yaml(document);
  const config::Node again = config::parse_yaml(yaml, "written.yaml");
  std::string second;
  read_as_everything(again, second);
  if (first != second) fmt::print(stderr, "written as:\n{}\n", yaml);
  SEXTANT_CHECK_EQ(first, second);

  config::Node laid_over = document;
  config::merge_into(laid_over, document);
  SEXTANT_CHECK_EQ(config::to_yaml(laid_over), yaml);

  returns_or_says_where([&] {
    config::substitute_variables(document, [](const std::string& name) -> std::optional<std::string> {
      return name == "HOME" ? std::optional<std::string>("null") : std::nullopt;
    });
  });
}

}  // namespace sextant::fuzz
