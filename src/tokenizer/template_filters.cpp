// The filters of Jinja that chat templates use (jinja2/filters.py).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/text.h"
#include "tokenizer/template_functions.h"
#include "tokenizer/unicode.h"

namespace sextant::tokenizer {
namespace {

using Filter = Value (*)(const Value&, const Arguments&);

std::int64_t integer_argument(const Arguments& arguments, std::size_t index, std::string_view name,
                              std::int64_t otherwise) {
  const Value* const value = arguments.find(index, name);
  if (value == nullptr) return otherwise;
  const auto number = integer_of(*value);
  if (!number) throw TemplateError(fmt::format("'{}' must be an integer", name));
  return *number;
}

bool flag_argument(const Arguments& arguments, std::size_t index, std::string_view name) {
  const Value* const value = arguments.find(index, name);
  return value != nullptr && is_true(*value);
}

/// "a.b.0": attributes one after the other.
Value attribute_path(const Value& value, const Value& path) {
  if (path.as<MarkedText>() == nullptr) return item_of(value, path);
  Value found = value;
  for (const std::string& part : base::split(path.as<MarkedText>()->bytes(), '.')) {
    std::int64_t index = 0;
    const auto [end, status] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_number = status == std::errc() && end == part.data() + part.size();
    found = item_of(found, is_number ? Value::integer(index) : Value::text(part));
  }
  return found;
}

Value attribute_or_self(const Value& value, const Value* path) {
  return path == nullptr || path->is_none() ? value : attribute_path(value, *path);
}

/// The rest of the arguments, from `first` on.
Arguments arguments_from(const Arguments& arguments, std::size_t first) {
  Arguments rest;
  for (std::size_t i = first; i < arguments.positional.size(); ++i)
    rest.positional.push_back(arguments.positional[i]);
  rest.named = arguments.named;
  return rest;
}

Value mapped(const Value& value, const Arguments& arguments) {
  const Value* const attribute = arguments.find(static_cast<std::size_t>(-1), "attribute");
  const Value* const otherwise = arguments.find(static_cast<std::size_t>(-1), "default");
  std::vector<Value> items;
  for (const Value& item : items_of(value)) {
    if (attribute == nullptr) {
      items.push_back(
          apply_filter(text_argument(arguments, 0, "filter").bytes(), item, arguments_from(arguments, 1)));
      continue;
    }
    Value found = attribute_path(item, *attribute);
    items.push_back(found.is_undefined() && otherwise != nullptr ? *otherwise : std::move(found));
  }
  return Value::list(std::move(items));
}

/// select, reject, selectattr, rejectattr.
Value selected(const Value& value, const Arguments& arguments, bool by_attribute, bool wanted) {
  const std::size_t test = by_attribute ? 1 : 0;
  if (by_attribute && arguments.positional.empty())
    throw TemplateError("selectattr needs the name of an attribute");
  std::vector<Value> items;
  for (const Value& item : items_of(value)) {
    const Value subject = by_attribute ? attribute_path(item, arguments.positional[0]) : item;
    const bool holds = arguments.positional.size() > test
                           ? apply_test(text_argument(arguments, test, "test").bytes(), subject,
                                        arguments_from(arguments, test + 1))
                           : is_true(subject);
    if (holds == wanted) items.push_back(item);
  }
  return Value::list(std::move(items));
}

Value select(const Value& v, const Arguments& a) { return selected(v, a, false, true); }
Value reject(const Value& v, const Arguments& a) { return selected(v, a, false, false); }
Value select_attribute(const Value& v, const Arguments& a) { return selected(v, a, true, true); }
Value reject_attribute(const Value& v, const Arguments& a) { return selected(v, a, true, false); }

/// Text compares without case unless asked.
Value without_case(const Value& value, bool case_sensitive) {
  const auto* const text = value.as<MarkedText>();
  return text == nullptr || case_sensitive ? value : Value(lower_case(*text));
}

Value sorted(const Value& value, const Arguments& arguments) {
  const bool case_sensitive = flag_argument(arguments, 1, "case_sensitive");
  const Value* const attribute = arguments.find(2, "attribute");
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items_of(value)) {
    keyed.emplace_back(without_case(attribute_or_self(item, attribute), case_sensitive), item);
  }
  const bool reverse = flag_argument(arguments, 0, "reverse");
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? less(b.first, a.first) : less(a.first, b.first);
  });
  std::vector<Value> items;
  for (auto& [key, item] : keyed) items.push_back(std::move(item));
  return Value::list(std::move(items));
}

Value dict_sorted(const Value& value, const Arguments& arguments) {
  const Dict* const dict = value.as_dict();
  if (dict == nullptr) throw TemplateError("dictsort needs a mapping");
  const bool case_sensitive = flag_argument(arguments, 0, "case_sensitive");
  const Value* const by = arguments.find(1, "by");
  const bool by_value = by != nullptr && to_text(*by).bytes() == "value";
  auto entries = dict->entries;
  std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
    return less(without_case(by_value ? a.second : a.first, case_sensitive),
                without_case(by_value ? b.second : b.first, case_sensitive));
  });
  if (flag_argument(arguments, 2, "reverse")) std::reverse(entries.begin(), entries.end());
  std::vector<Value> items;
  for (auto& [key, own] : entries) items.push_back(Value::list({key, own}, true));
  return Value::list(std::move(items));
}

Value unique(const Value& value, const Arguments& arguments) {
  const bool case_sensitive = flag_argument(arguments, 0, "case_sensitive");
  const Value* const attribute = arguments.find(1, "attribute");
  std::vector<Value> keys;
  std::vector<Value> items;
  for (const Value& item : items_of(value)) {
    Value key = without_case(attribute_or_self(item, attribute), case_sensitive);
    if (std::any_of(keys.begin(), keys.end(), [&](const Value& seen) { return equal(seen, key); })) continue;
    keys.push_back(std::move(key));
    items.push_back(item);
  }
  return Value::list(std::move(items));
}

Value extreme(const Value& value, const Arguments& arguments, bool largest) {
  const bool case_sensitive = flag_argument(arguments, 0, "case_sensitive");
  const Value* const attribute = arguments.find(1, "attribute");
  const std::vector<Value> items = items_of(value);
  if (items.empty()) return Value(Undefined{"No aggregated item, sequence was empty."});
  const auto key = [&](const Value& item) {
    return without_case(attribute_or_self(item, attribute), case_sensitive);
  };
  const Value* best = &items.front();
  for (const Value& item : items) {
    if (largest ? less(key(*best), key(item)) : less(key(item), key(*best))) best = &item;
  }
  return *best;
}

Value smallest(const Value& v, const Arguments& a) { return extreme(v, a, false); }
Value largest(const Value& v, const Arguments& a) { return extreme(v, a, true); }

Value sum(const Value& value, const Arguments& arguments) {
  const Value* const attribute = arguments.find(0, "attribute");
  const Value* const start = arguments.find(1, "start");
  Value total = start == nullptr ? Value::integer(0) : *start;
  for (const Value& item : items_of(value))
    total = apply_operator("+", total, attribute_or_self(item, attribute));
  return total;
}

Value defaulted(const Value& value, const Arguments& arguments) {
  const Value* const otherwise = arguments.find(0, "default_value");
  const bool missing = value.is_undefined() || (flag_argument(arguments, 1, "boolean") && !is_true(value));
  if (!missing) return value;
  return otherwise == nullptr ? Value(MarkedText()) : *otherwise;
}

std::optional<double> number_in(const MarkedText& text) {
  const std::string trimmed(strip(text, nullptr, true, true).bytes());
  char* end = nullptr;
  const double number = std::strtod(trimmed.c_str(), &end);
  if (trimmed.empty() || end != trimmed.c_str() + trimmed.size() ||
      trimmed.find_first_of("xX") != std::string::npos)
    return std::nullopt;
  return number;
}

Value to_integer(const Value& value, const Arguments& arguments) {
  const Value* const otherwise = arguments.find(0, "default");
  const Value missing = otherwise == nullptr ? Value::integer(0) : *otherwise;
  if (const auto integer = integer_of(value)) return Value::integer(*integer);
  const auto* const text = value.as<MarkedText>();
  if (text != nullptr) {
    const std::string trimmed(strip(*text, nullptr, true, true).bytes());
    std::int64_t number = 0;
    const char* const first = trimmed.data() + (trimmed.starts_with('+') ? 1 : 0);
    const auto [end, status] = std::from_chars(first, trimmed.data() + trimmed.size(), number);
    if (status == std::errc() && end == trimmed.data() + trimmed.size()) return Value::integer(number);
  }
  const auto number = text != nullptr ? number_in(*text) : number_of(value);
  if (!number || !std::isfinite(*number) || std::fabs(*number) > 9e18) return missing;
  return Value::integer(static_cast<std::int64_t>(*number));
}

Value to_float(const Value& value, const Arguments& arguments) {
  const Value* const otherwise = arguments.find(0, "default");
  const auto* const text = value.as<MarkedText>();
  const auto number = text != nullptr ? number_in(*text) : number_of(value);
  if (number) return Value(Value::Variant(*number));
  return otherwise == nullptr ? Value(Value::Variant(0.0)) : *otherwise;
}

Value rounded(const Value& value, const Arguments& arguments) {
  const auto number = number_of(value);
  if (!number) throw TemplateError(fmt::format("type {} doesn't define __round__ method", type_name(value)));
  const std::int64_t digits =
      std::clamp<std::int64_t>(integer_argument(arguments, 0, "precision", 0), -300, 300);
  const Value* const method = arguments.find(1, "method");
  const std::string name = method == nullptr ? "common" : to_text(*method).bytes();
  const double scale = std::pow(10.0, static_cast<double>(digits));
  if (name == "ceil") return Value(Value::Variant(std::ceil(*number * scale) / scale));
  if (name == "floor") return Value(Value::Variant(std::floor(*number * scale) / scale));
  if (name != "common") throw TemplateError("method must be common, ceil or floor");
  // Decimal digits of the exact value, half to even, as Python's round.
  if (digits >= 0)
    return Value(Value::Variant(std::strtod(fmt::format("{:.{}f}", *number, digits).c_str(), nullptr)));
  return Value(Value::Variant(std::nearbyint(*number * scale) / scale));
}

Value absolute(const Value& value, const Arguments&) {
  const auto number = number_of(value);
  if (!number) throw TemplateError(fmt::format("bad operand type for abs(): '{}'", type_name(value)));
  return *number < 0 ? negated(value) : integer_of(value) ? Value::integer(*integer_of(value)) : value;
}

Value json(const Value& value, const Arguments& arguments) {
  JsonStyle style;
  style.ascii = flag_argument(arguments, static_cast<std::size_t>(-1), "ensure_ascii");
  style.sort_keys = flag_argument(arguments, static_cast<std::size_t>(-1), "sort_keys");
  const Value* const indent = arguments.find(0, "indent");
  if (indent != nullptr && !indent->is_none()) {
    style.indent =
        static_cast<int>(std::clamp<std::int64_t>(integer_argument(arguments, 0, "indent", 0), 0, 100));
    style.item_separator = ",";
  }
  const Value* const separators = arguments.find(static_cast<std::size_t>(-1), "separators");
  if (separators != nullptr && !separators->is_none()) {
    const std::vector<Value> pair = items_of(*separators);
    if (pair.size() != 2) throw TemplateError("separators must be a pair");
    style.item_separator = to_text(pair[0]);
    style.key_separator = to_text(pair[1]);
  }
  return Value(to_json(value, style));
}

Value escaped(const Value& value, const Arguments&) {
  MarkedText out;
  const MarkedText text = to_text(value);
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text.bytes()[at];
    const std::string_view name = c == '&'    ? "&amp;"
                                  : c == '<'  ? "&lt;"
                                  : c == '>'  ? "&gt;"
                                  : c == '"'  ? "&#34;"
                                  : c == '\'' ? "&#39;"
                                              : "";
    if (name.empty()) {
      out.append(text.slice(at, 1));
    } else {
      out.append(name, text.is_user(at));
    }
  }
  return Value(std::move(out));
}

Value indented(const Value& value, const Arguments& arguments) {
  const Value* const width = arguments.find(0, "width");
  MarkedText indent = width != nullptr && width->as<MarkedText>() != nullptr
                          ? *width->as<MarkedText>()
                          : MarkedText(std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(
                                                       integer_argument(arguments, 0, "width", 4), 0, 1000)),
                                                   ' '));
  const bool first = flag_argument(arguments, 1, "first");
  const bool blank = flag_argument(arguments, 2, "blank");
  MarkedText text = to_text(value);
  text.append("\n", false);  // so that a line break at the end counts, as Jinja does it
  const std::vector<MarkedText> lines = split_lines(text);
  MarkedText out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append("\n", false);
    if (i == 0 ? first : blank || !lines[i].empty()) out.append(indent);
    out.append(lines[i]);
  }
  return Value(std::move(out));
}

/// Words begin after white space and ( { [ < - , as Jinja's title filter sees them.
Value title(const Value& value, const Arguments&) {
  const MarkedText text = to_text(value);
  MarkedText out;
  bool begins = true;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text.bytes(), at);
    const MarkedText one = text.slice(at, character.bytes);
    const bool separates =
        is_white_space(character.code) ||
        (character.code < 128 &&
         std::string_view("-({[<").find(static_cast<char>(character.code)) != std::string_view::npos);
    out.append(begins ? upper_case(one) : lower_case(one));
    begins = separates;
    at += character.bytes;
  }
  return Value(std::move(out));
}

Value joined(const Value& value, const Arguments& arguments) {
  const Value* const separator = arguments.find(0, "d");
  const Value* const attribute = arguments.find(1, "attribute");
  std::vector<Value> items = items_of(value);
  for (Value& item : items) item = attribute_or_self(item, attribute);
  return Value(join(items, separator == nullptr ? MarkedText() : to_text(*separator)));
}

Value reversed(const Value& value, const Arguments&) {
  std::vector<Value> items = items_of(value);
  std::reverse(items.begin(), items.end());
  return value.as<MarkedText>() != nullptr ? Value(join(items, MarkedText())) : Value::list(std::move(items));
}

Value end_of(const Value& value, bool last) {
  const std::vector<Value> items = items_of(value);
  if (items.empty()) return Value(Undefined{"No first item, sequence was empty."});
  return last ? items.back() : items.front();
}

Value pairs(const Value& value, const Arguments&) {
  if (value.is_undefined()) return Value::list({});
  if (value.as_dict() == nullptr) throw TemplateError("Can only get item pairs from a mapping.");
  std::vector<Value> items;
  for (const auto& [key, own] : value.as_dict()->entries) items.push_back(Value::list({key, own}, true));
  return Value::list(std::move(items));
}

const std::map<std::string_view, Filter>& filters() {
  using V = const Value&;
  using A = const Arguments&;
  static const Filter kLength = [](V v, A) { return Value::integer(length_of(v)); };
  static const std::map<std::string_view, Filter> table = {
      {"trim", [](V v, A a) { return Value(strip(to_text(v), a.find(0, "chars"), true, true)); }},
      {"upper", [](V v, A) { return Value(upper_case(to_text(v))); }},
      {"lower", [](V v, A) { return Value(lower_case(to_text(v))); }},
      {"capitalize", [](V v, A) { return Value(capitalised(to_text(v))); }},
      {"title", title},
      {"length", kLength},
      {"count", kLength},
      {"map", mapped},
      {"select", select},
      {"reject", reject},
      {"selectattr", select_attribute},
      {"rejectattr", reject_attribute},
      {"join", joined},
      {"unique", unique},
      {"list", [](V v, A) { return Value::list(items_of(v)); }},
      {"first", [](V v, A) { return end_of(v, false); }},
      {"last", [](V v, A) { return end_of(v, true); }},
      {"default", defaulted},
      {"d", defaulted},
      {"replace",
       [](V v, A a) {
         return Value(replace(to_text(v), text_argument(a, 0, "old"), text_argument(a, 1, "new"),
                              integer_argument(a, 2, "count", -1)));
       }},
      {"int", to_integer},
      {"float", to_float},
      {"string", [](V v, A) { return Value(to_text(v)); }},
      {"items", pairs},
      {"dictsort", dict_sorted},
      {"sort", sorted},
      {"reverse", reversed},
      {"sum", sum},
      {"min", smallest},
      {"max", largest},
      {"abs", absolute},
      {"round", rounded},
      {"tojson", json},
      {"escape", escaped},
      {"e", escaped},
      {"safe", [](V v, A) { return Value(to_text(v)); }},
      {"indent", indented},
      {"attr", [](V v, A a) { return attribute_of(v, text_argument(a, 0, "name").bytes()); }},
      {"format", [](V v, A a) { return Value(printf_format(to_text(v), a)); }},
      {"wordcount",
       [](V v, A) {
         return Value::integer(static_cast<std::int64_t>(length_of(
             (*text_method(to_text(v), "split")).as<std::shared_ptr<Callable>>()->get()->call({}))));
       }},
  };
  return table;
}

}  // namespace

bool is_known_filter(std::string_view name) { return filters().contains(name); }

Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments) {
  const auto found = filters().find(name);
  if (found == filters().end()) throw TemplateError(fmt::format("No filter named '{}'.", name));
  return found->second(value, arguments);
}

}  // namespace sextant::tokenizer
