#include "llm/schema.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "llm/json.h"

namespace sextant::llm {
namespace {

constexpr std::size_t kMostProblems = 20;
constexpr int kDeepest = 64;  // a $ref can lead back to itself
constexpr std::size_t kQuotedBytes = 80;

constexpr std::array<std::string_view, 29> kKeywords = {"type",
                                                        "properties",
                                                        "required",
                                                        "additionalProperties",
                                                        "items",
                                                        "minItems",
                                                        "maxItems",
                                                        "enum",
                                                        "const",
                                                        "minimum",
                                                        "maximum",
                                                        "exclusiveMinimum",
                                                        "exclusiveMaximum",
                                                        "multipleOf",
                                                        "minLength",
                                                        "maxLength",
                                                        "anyOf",
                                                        "oneOf",
                                                        "allOf",
                                                        "$ref",
                                                        "$defs",
                                                        "definitions",
                                                        "title",
                                                        "description",
                                                        "default",
                                                        "examples",
                                                        "format",
                                                        "$schema",
                                                        "$id"};

std::string shown(const Json& value) {
  std::string text = dump(value);
  if (text.size() > kQuotedBytes) text = text.substr(0, kQuotedBytes) + "…";
  return text;
}

bool is_integer(const Json& value) {
  if (value.is_number_integer()) return true;
  return value.is_number() && std::floor(value.get<double>()) == value.get<double>();
}

bool has_type(const Json& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "number") return value.is_number();
  return type == "integer" && is_integer(value);
}

/// Code points, as the standard counts the length of strings.
std::size_t length_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

class Validator {
 public:
  explicit Validator(const Json& root) : root_(root) {}

  void check(const Json& schema, const Json& value, const std::string& place, int depth) {
    if (problems_.size() >= kMostProblems) return;
    if (schema.is_boolean()) {
      if (!schema.get<bool>()) report(place, "is not allowed");
      return;
    }
    if (!schema.is_object() || depth > kDeepest) return report(place, "has a schema that cannot be used");
    check_keywords(schema, place);
    if (at(schema, "$ref").is_string()) check(resolved(text_at(schema, "$ref")), value, place, depth + 1);
    if (!check_type(schema, value, place)) return;
    check_values(schema, value, place);
    if (value.is_number()) check_number(schema, value, place);
    if (value.is_string()) {
      check_size(schema, "minLength", "maxLength", length_of(value.get<std::string>()), "characters", place);
    }
    if (value.is_array()) check_array(schema, value, place, depth);
    if (value.is_object()) check_object(schema, value, place, depth);
    check_combinations(schema, value, place, depth);
  }

  std::vector<std::string> take() { return std::move(problems_); }

 private:
  void report(const std::string& place, const std::string& what) {
    if (problems_.size() < kMostProblems) problems_.push_back(fmt::format("{}: {}", place, what));
  }

  void check_keywords(const Json& schema, const std::string& place) {
    for (const auto& [key, value] : schema.items()) {
      if (std::ranges::find(kKeywords, key) == kKeywords.end()) {
        report(place, fmt::format("cannot be checked: the schema's keyword \"{}\" is not supported", key));
      }
    }
  }

  Json resolved(const std::string& reference) const {
    if (reference == "#") return root_;
    for (const char* folder : {"$defs", "definitions"}) {
      const std::string prefix = fmt::format("#/{}/", folder);
      if (reference.starts_with(prefix)) return at(at(root_, folder), reference.substr(prefix.size()));
    }
    return {};
  }

  bool check_type(const Json& schema, const Json& value, const std::string& place) {
    const Json& type = at(schema, "type");
    std::vector<std::string> names;
    if (type.is_string()) names.push_back(type.get<std::string>());
    if (type.is_array()) {
      for (const Json& name : type) names.push_back(name.is_string() ? name.get<std::string>() : "");
    }
    if (names.empty()) return true;
    if (std::ranges::any_of(names, [&](const std::string& name) { return has_type(value, name); }))
      return true;
    report(place, fmt::format("{} is no {}", shown(value), base::join(names, " or ")));
    return false;
  }

  void check_values(const Json& schema, const Json& value, const std::string& place) {
    const Json& options = at(schema, "enum");
    if (options.is_array() && std::ranges::find(options, value) == options.end()) {
      std::vector<std::string> texts;
      for (const Json& option : options) texts.push_back(dump(option));
      report(place, fmt::format("{} is not one of {}", shown(value), base::join(texts, ", ")));
    }
    if (schema.contains("const") && schema["const"] != value) {
      report(place, fmt::format("{} is not {}", shown(value), shown(schema["const"])));
    }
  }

  void check_number(const Json& schema, const Json& value, const std::string& place) {
    const auto number = value.get<double>();
    const auto limit = [&](const char* key, auto breaks, const char* text) {
      const Json& bound = at(schema, key);
      if (bound.is_number() && breaks(number, bound.get<double>())) {
        report(place, fmt::format("{} is {} {}", shown(value), text, shown(bound)));
      }
    };
    limit(
        "minimum", [](double a, double b) { return a < b; }, "below the minimum");
    limit(
        "maximum", [](double a, double b) { return a > b; }, "above the maximum");
    limit(
        "exclusiveMinimum", [](double a, double b) { return a <= b; }, "not above");
    limit(
        "exclusiveMaximum", [](double a, double b) { return a >= b; }, "not below");
    limit(
        "multipleOf", [](double a, double b) { return b > 0 && std::fmod(a, b) != 0; }, "no multiple of");
  }

  void check_size(const Json& schema, const char* least, const char* most, std::size_t size, const char* what,
                  const std::string& place) {
    const auto count = static_cast<double>(size);
    if (at(schema, least).is_number() && count < at(schema, least).get<double>()) {
      report(place, fmt::format("has {} {}, at least {} are needed", size, what, shown(at(schema, least))));
    }
    if (at(schema, most).is_number() && count > at(schema, most).get<double>()) {
      report(place, fmt::format("has {} {}, at most {} are allowed", size, what, shown(at(schema, most))));
    }
  }

  void check_array(const Json& schema, const Json& value, const std::string& place, int depth) {
    check_size(schema, "minItems", "maxItems", value.size(), "items", place);
    if (!schema.contains("items")) return;
    for (std::size_t i = 0; i < value.size(); ++i) {
      check(schema["items"], value[i], fmt::format("{}[{}]", place, i), depth + 1);
    }
  }

  void check_object(const Json& schema, const Json& value, const std::string& place, int depth) {
    const Json& properties = at(schema, "properties");
    const Json& required = at(schema, "required");
    if (required.is_array()) {
      for (const Json& name : required) {
        if (name.is_string() && !value.contains(name.get<std::string>())) {
          report(place, fmt::format("\"{}\" is missing", name.get<std::string>()));
        }
      }
    }
    std::vector<std::string> known;
    if (properties.is_object()) {
      for (const auto& [key, property] : properties.items()) known.push_back(key);
    }
    for (const auto& [key, member] : value.items()) {
      const std::string member_place = fmt::format("{}.{}", place, key);
      if (properties.is_object() && properties.contains(key)) {
        check(properties[key], member, member_place, depth + 1);
      } else if (at(schema, "additionalProperties") == Json(false)) {
        report(place, fmt::format("unknown key \"{}\"{}", key, base::did_you_mean(key, known)));
      } else if (at(schema, "additionalProperties").is_object()) {
        check(schema["additionalProperties"], member, member_place, depth + 1);
      }
    }
  }

  std::size_t matches(const Json& options, const Json& value, int depth) const {
    std::size_t count = 0;
    for (const Json& option : options) {
      Validator inner(root_);
      inner.check(option, value, "$", depth + 1);
      count += inner.problems_.empty() ? 1 : 0;
    }
    return count;
  }

  void check_combinations(const Json& schema, const Json& value, const std::string& place, int depth) {
    const Json& all = at(schema, "allOf");
    if (all.is_array()) {
      for (const Json& part : all) check(part, value, place, depth + 1);
    }
    const Json& any = at(schema, "anyOf");
    if (any.is_array() && matches(any, value, depth) == 0) {
      report(place, fmt::format("{} matches none of the {} allowed forms", shown(value), any.size()));
    }
    const Json& one = at(schema, "oneOf");
    if (!one.is_array()) return;
    if (const std::size_t count = matches(one, value, depth); count != 1) {
      report(place, fmt::format("{} matches {} of the {} forms, exactly one is needed", shown(value), count,
                                one.size()));
    }
  }

  const Json& root_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> schema_problems(std::string_view schema, std::string_view value) {
  const Json root = parse_or_discarded(schema);
  const Json document = parse_or_discarded(value);
  if (root.is_discarded()) return {"$: the schema is not JSON"};
  if (document.is_discarded()) return {"$: not JSON"};
  Validator validator(root);
  validator.check(root, document, "$", 0);
  return validator.take();
}

}  // namespace sextant::llm
