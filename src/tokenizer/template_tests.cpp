// The tests of Jinja (jinja2/tests.py): what follows `is`.
#include <fmt/format.h>

#include <map>

#include "tokenizer/template_functions.h"

namespace sextant::tokenizer {
namespace {

using Test = bool (*)(const Value&, const Arguments&);
using V = const Value&;
using A = const Arguments&;

const Value& other(const Arguments& arguments) {
  if (arguments.positional.empty()) throw TemplateError("the test needs something to compare with");
  return arguments.positional.front();
}

std::int64_t whole(const Value& value) {
  const auto number = integer_of(value);
  if (!number) throw TemplateError(fmt::format("'{}' is no integer", type_name(value)));
  return *number;
}

bool divisible(const Value& value, std::int64_t by) {
  if (by == 0) throw TemplateError("division by zero");
  return by == -1 || whole(value) % by == 0;
}

/// The same object: for templates only constants and equal references matter.
bool same(const Value& a, const Value& b) {
  if (a.data.index() != b.data.index()) return false;
  if (a.as_list() != nullptr) return a.as_list() == b.as_list();
  if (a.as_dict() != nullptr) return a.as_dict() == b.as_dict();
  return equal(a, b);
}

bool is_sequence(const Value& value) {
  return value.is_undefined() || value.as<MarkedText>() != nullptr || value.as_list() != nullptr ||
         value.as_dict() != nullptr;
}

bool has_case(const Value& value, MarkedText (*mapped)(const MarkedText&),
              MarkedText (*opposite)(const MarkedText&)) {
  const MarkedText text = to_text(value);
  return mapped(text).bytes() == text.bytes() && opposite(text).bytes() != text.bytes();
}

const std::map<std::string_view, Test>& tests() {
  static const Test kEqual = [](V v, A a) { return equal(v, other(a)); };
  static const Test kUnequal = [](V v, A a) { return !equal(v, other(a)); };
  static const Test kLess = [](V v, A a) { return less(v, other(a)); };
  static const Test kGreater = [](V v, A a) { return less(other(a), v); };
  static const Test kAtMost = [](V v, A a) { return !less(other(a), v); };
  static const Test kAtLeast = [](V v, A a) { return !less(v, other(a)); };
  static const std::map<std::string_view, Test> table = {
      {"defined", [](V v, A) { return !v.is_undefined(); }},
      {"undefined", [](V v, A) { return v.is_undefined(); }},
      {"none", [](V v, A) { return v.is_none(); }},
      {"string", [](V v, A) { return v.as<MarkedText>() != nullptr; }},
      {"mapping", [](V v, A) { return v.as_dict() != nullptr && !v.as_dict()->is_namespace; }},
      {"iterable", [](V v, A) { return is_sequence(v); }},
      {"sequence", [](V v, A) { return is_sequence(v); }},
      {"number", [](V v, A) { return number_of(v).has_value(); }},
      {"integer", [](V v, A) { return v.as<std::int64_t>() != nullptr || v.as<BigInteger>() != nullptr; }},
      {"float", [](V v, A) { return v.as<double>() != nullptr; }},
      {"boolean", [](V v, A) { return v.as<bool>() != nullptr; }},
      {"true", [](V v, A) { return v.as<bool>() != nullptr && *v.as<bool>(); }},
      {"false", [](V v, A) { return v.as<bool>() != nullptr && !*v.as<bool>(); }},
      {"callable", [](V v, A) { return v.as<std::shared_ptr<Callable>>() != nullptr; }},
      {"sameas", [](V v, A a) { return same(v, other(a)); }},
      {"divisibleby", [](V v, A a) { return divisible(v, whole(other(a))); }},
      {"odd", [](V v, A) { return !divisible(v, 2); }},
      {"even", [](V v, A) { return divisible(v, 2); }},
      {"eq", kEqual},
      {"==", kEqual},
      {"equalto", kEqual},
      {"ne", kUnequal},
      {"!=", kUnequal},
      {"lt", kLess},
      {"<", kLess},
      {"lessthan", kLess},
      {"gt", kGreater},
      {">", kGreater},
      {"greaterthan", kGreater},
      {"le", kAtMost},
      {"<=", kAtMost},
      {"ge", kAtLeast},
      {">=", kAtLeast},
      {"in", [](V v, A a) { return contains(other(a), v); }},
      {"lower", [](V v, A) { return has_case(v, lower_case, upper_case); }},
      {"upper", [](V v, A) { return has_case(v, upper_case, lower_case); }},
      {"filter", [](V v, A) { return is_known_filter(to_text(v).bytes()); }},
      {"test", [](V v, A) { return is_known_test(to_text(v).bytes()); }},
  };
  return table;
}

}  // namespace

bool is_known_test(std::string_view name) { return tests().contains(name); }

bool apply_test(const std::string& name, const Value& value, const Arguments& arguments) {
  const auto found = tests().find(name);
  if (found == tests().end()) throw TemplateError(fmt::format("No test named '{}'.", name));
  return found->second(value, arguments);
}

}  // namespace sextant::tokenizer
