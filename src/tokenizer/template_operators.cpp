// Attributes, items, slices and operators of expressions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tokenizer/template_functions.h"
#include "tokenizer/unicode.h"

namespace sextant::tokenizer {
namespace {

[[noreturn]] void refuse_operands(const std::string& name, const Value& left, const Value& right) {
  throw TemplateError(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", name, type_name(left),
                                  type_name(right)));
}

Value bound(std::string name, std::function<Value(const Arguments&)> call) {
  return Value(Value::Variant(std::make_shared<Callable>(Callable{std::move(name), std::move(call)})));
}

Value pairs_of(const Dict& dict) {
  std::vector<Value> pairs;
  for (const auto& [key, value] : dict.entries) pairs.push_back(Value::list({key, value}, true));
  return Value::list(std::move(pairs));
}

std::optional<Value> dict_method(const std::shared_ptr<Dict>& dict, const std::string& name) {
  if (dict->is_namespace) return std::nullopt;
  if (name == "items") return bound(name, [dict](const Arguments&) { return pairs_of(*dict); });
  if (name == "keys" || name == "values") {
    return bound(name, [dict, keys = name == "keys"](const Arguments&) {
      std::vector<Value> items;
      for (const auto& [key, value] : dict->entries) items.push_back(keys ? key : value);
      return Value::list(std::move(items));
    });
  }
  if (name != "get") return std::nullopt;
  return bound(name, [dict](const Arguments& arguments) {
    const Value* const key = arguments.find(0, "key");
    if (key == nullptr) throw TemplateError("get needs a key");
    const Value* const found = dict->find(*key);
    const Value* const otherwise = arguments.find(1, "default");
    return found != nullptr ? *found : otherwise != nullptr ? *otherwise : Value(None{});
  });
}

std::optional<Value> list_method(const std::shared_ptr<List>& list, const std::string& name) {
  if (name != "index" && name != "count") return std::nullopt;
  return bound(name, [list, index = name == "index"](const Arguments& arguments) {
    const Value* const wanted = arguments.find(0, "value");
    if (wanted == nullptr) throw TemplateError("index and count need a value");
    const auto is_it = [&](const Value& item) { return equal(item, *wanted); };
    if (!index) return Value::integer(std::count_if(list->items.begin(), list->items.end(), is_it));
    const auto at = std::find_if(list->items.begin(), list->items.end(), is_it);
    if (at == list->items.end()) throw TemplateError("the value is not in the list");
    return Value::integer(at - list->items.begin());
  });
}

std::optional<Value> loop_attribute(const std::shared_ptr<Loop>& loop, const std::string& name) {
  const auto& items = loop->items->items;
  const auto index = static_cast<std::int64_t>(loop->index);
  const auto length = static_cast<std::int64_t>(items.size());
  if (name == "index") return Value::integer(index + 1);
  if (name == "index0") return Value::integer(index);
  if (name == "revindex") return Value::integer(length - index);
  if (name == "revindex0") return Value::integer(length - index - 1);
  if (name == "length") return Value::integer(length);
  if (name == "first") return Value::boolean(index == 0);
  if (name == "last") return Value::boolean(index + 1 == length);
  if (name == "depth") return Value::integer(loop->depth);
  if (name == "depth0") return Value::integer(loop->depth - 1);
  if (name == "previtem")
    return index > 0 ? items[loop->index - 1] : Value(Undefined{"there is no previous item"});
  if (name == "nextitem")
    return index + 1 < length ? items[loop->index + 1] : Value(Undefined{"there is no next item"});
  if (name == "cycle") {
    return bound(name, [index](const Arguments& arguments) {
      if (arguments.positional.empty()) throw TemplateError("no items for cycling given");
      return arguments.positional[static_cast<std::size_t>(index) % arguments.positional.size()];
    });
  }
  if (name == "changed") {
    return bound(name, [loop](const Arguments& arguments) {
      const bool same =
          loop->last_changed && std::equal(loop->last_changed->begin(), loop->last_changed->end(),
                                           arguments.positional.begin(), arguments.positional.end(), equal);
      loop->last_changed = arguments.positional;
      return Value::boolean(!same);
    });
  }
  return std::nullopt;
}

std::optional<Value> own_attribute(const Value& value, const std::string& name) {
  if (const auto* text = value.as<MarkedText>()) return text_method(*text, name);
  if (const auto* dict = value.as<std::shared_ptr<Dict>>()) return dict_method(*dict, name);
  if (const auto* list = value.as<std::shared_ptr<List>>()) return list_method(*list, name);
  if (const auto* loop = value.as<std::shared_ptr<Loop>>()) return loop_attribute(*loop, name);
  return std::nullopt;
}

void refuse_undefined(const Value& value, const std::string& name) {
  if (const auto* undefined = value.as<Undefined>()) {
    throw TemplateError(undefined->name.empty()
                            ? fmt::format("an undefined value has no attribute '{}'", name)
                            : fmt::format("'{}' is undefined", undefined->name));
  }
}

std::optional<Value> own_item(const Value& value, const Value& key) {
  if (const Dict* dict = value.as_dict()) {
    const Value* const found = dict->find(key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  const auto index = integer_of(key);
  if (!index) return std::nullopt;
  if (const List* list = value.as_list()) {
    const auto length = static_cast<std::int64_t>(list->items.size());
    const std::int64_t at = *index < 0 ? *index + length : *index;
    return at < 0 || at >= length ? std::nullopt : std::optional(list->items[static_cast<std::size_t>(at)]);
  }
  if (value.as<MarkedText>() != nullptr) {
    const std::vector<Value> characters = items_of(value);
    const auto length = static_cast<std::int64_t>(characters.size());
    const std::int64_t at = *index < 0 ? *index + length : *index;
    return at < 0 || at >= length ? std::nullopt : std::optional(characters[static_cast<std::size_t>(at)]);
  }
  return std::nullopt;
}

Value add(const Value& left, const Value& right) {
  const auto* const text = left.as<MarkedText>();
  const auto* const other = right.as<MarkedText>();
  if (text != nullptr && other != nullptr) {
    if (text->size() + other->size() > kMostBytes) throw TemplateError("the text becomes too long");
    MarkedText joined = *text;
    return Value(std::move(joined.append(*other)));
  }
  const List* const list = left.as_list();
  const List* const more = right.as_list();
  if (list == nullptr || more == nullptr || list->is_tuple != more->is_tuple)
    refuse_operands("+", left, right);
  if (list->items.size() + more->items.size() > static_cast<std::size_t>(kMostItems))
    throw TemplateError("the list becomes too long");
  std::vector<Value> items = list->items;
  items.insert(items.end(), more->items.begin(), more->items.end());
  return Value::list(std::move(items), list->is_tuple);
}

Value repeat(const Value& value, std::int64_t times) {
  times = std::max<std::int64_t>(times, 0);
  if (const auto* text = value.as<MarkedText>()) {
    if (times > 0 && text->size() > kMostBytes / static_cast<std::size_t>(times))
      throw TemplateError("the text becomes too long");
    MarkedText out;
    for (std::int64_t i = 0; i < times; ++i) out.append(*text);
    return Value(std::move(out));
  }
  const List& list = *value.as_list();
  if (times > 0 && static_cast<std::int64_t>(list.items.size()) > kMostItems / times)
    throw TemplateError("the list becomes too long");
  std::vector<Value> items;
  for (std::int64_t i = 0; i < times; ++i) items.insert(items.end(), list.items.begin(), list.items.end());
  return Value::list(std::move(items), list.is_tuple);
}

bool repeats(const Value& value) { return value.as<MarkedText>() != nullptr || value.as_list() != nullptr; }

std::int64_t checked(bool overflowed, std::int64_t result) {
  if (overflowed) throw TemplateError("integers beyond 64 bits are not computed with");
  return result;
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  if (exponent > 64 && base != 0 && base != 1 && base != -1) checked(true, 0);
  for (std::int64_t i = 0; i < (exponent > 64 ? exponent % 2 : exponent); ++i) {
    checked(__builtin_mul_overflow(result, base, &result), 0);
  }
  return base == 0 && exponent > 0 ? 0 : result;
}

/// Python's // and %: towards minus infinity.
std::int64_t floor_divided(std::int64_t a, std::int64_t b) {
  checked(b == -1 && a == std::numeric_limits<std::int64_t>::min(), 0);
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

std::optional<Value> integer_result(const std::string& name, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (name == "+") return Value::integer(checked(__builtin_add_overflow(a, b, &result), result));
  if (name == "-") return Value::integer(checked(__builtin_sub_overflow(a, b, &result), result));
  if (name == "*") return Value::integer(checked(__builtin_mul_overflow(a, b, &result), result));
  if (name == "**" && b >= 0) return Value::integer(power(a, b));
  if (name == "//") return Value::integer(floor_divided(a, b));
  if (name == "%") return Value::integer(b == -1 ? 0 : a - b * floor_divided(a, b));
  return std::nullopt;
}

Value float_result(const std::string& name, double a, double b) {
  const auto value = [](double number) { return Value(Value::Variant(number)); };
  if (name == "+") return value(a + b);
  if (name == "-") return value(a - b);
  if (name == "*") return value(a * b);
  if (name == "/") return value(a / b);
  if (name == "//") return value(std::floor(a / b));
  if (name == "%") return value(a - b * std::floor(a / b));
  return value(std::pow(a, b));
}

}  // namespace

Value attribute_of(const Value& value, const std::string& name) {
  refuse_undefined(value, name);
  if (auto own = own_attribute(value, name)) return *own;
  if (const Dict* dict = value.as_dict()) {
    if (const Value* const found = dict->find(name)) return *found;
  }
  return Value(Undefined{fmt::format("{} object has no attribute '{}'", type_name(value), name)});
}

Value item_of(const Value& value, const Value& key) {
  refuse_undefined(value, to_text(key).bytes());
  if (auto own = own_item(value, key)) return *own;
  if (const auto* name = key.as<MarkedText>()) {
    if (auto own = own_attribute(value, name->bytes())) return *own;
  }
  return Value(
      Undefined{fmt::format("{} object has no element {}", type_name(value), representation(key).bytes())});
}

Value slice_of(const Value& value, const Value& begin, const Value& end, const Value& step) {
  refuse_undefined(value, "slice");
  const bool is_text = value.as<MarkedText>() != nullptr;
  if (!is_text && value.as_list() == nullptr)
    throw TemplateError(fmt::format("'{}' object cannot be sliced", type_name(value)));
  const std::vector<Value> items = items_of(value);
  const auto bound_of = [](const Value& given, std::int64_t otherwise) {
    if (given.is_none() || given.is_undefined()) return otherwise;
    const auto number = integer_of(given);
    if (!number) throw TemplateError("slice indices must be integers or None");
    return *number;
  };
  const std::int64_t stride = bound_of(step, 1);
  if (stride == 0) throw TemplateError("slice step cannot be zero");
  const auto length = static_cast<std::int64_t>(items.size());
  // PySlice_AdjustIndices of CPython.
  const auto clamp = [&](std::int64_t at) {
    if (at < 0) at = std::max<std::int64_t>(at + length, stride < 0 ? -1 : 0);
    return std::min(at, stride < 0 ? length - 1 : length);
  };
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 4;
  const std::int64_t first = stride > 0 ? clamp(bound_of(begin, 0)) : clamp(bound_of(begin, kFar));
  const std::int64_t last = stride > 0                            ? clamp(bound_of(end, kFar))
                            : end.is_none() || end.is_undefined() ? -1
                                                                  : clamp(bound_of(end, 0));
  std::vector<Value> kept;
  for (std::int64_t at = first; stride > 0 ? at < last : at > last;) {
    kept.push_back(items[static_cast<std::size_t>(at)]);
    if (stride > 0 ? stride >= last - at : stride <= last - at) break;
    at += stride;
  }
  if (is_text) return Value(join(kept, MarkedText()));
  return Value::list(std::move(kept), value.as_list()->is_tuple);
}

Value apply_operator(const std::string& name, const Value& left, const Value& right) {
  if (name == "~") return Value(join({left, right}, MarkedText()));
  if (left.is_undefined()) refuse_undefined(left, name);
  if (right.is_undefined()) refuse_undefined(right, name);
  const auto a = integer_of(left);
  const auto b = integer_of(right);
  const auto x = number_of(left);
  const auto y = number_of(right);
  if (x && y) {
    if (*y == 0 && (name == "/" || name == "//" || name == "%")) throw TemplateError("division by zero");
    if (a && b) {
      if (auto result = integer_result(name, *a, *b)) return *result;
    }
    return float_result(name, *x, *y);
  }
  if (name == "+") return add(left, right);
  if (name == "*" && repeats(left) && b) return repeat(left, *b);
  if (name == "*" && a && repeats(right)) return repeat(right, *a);
  if (const auto* format = left.as<MarkedText>(); format != nullptr && name == "%") {
    Arguments arguments;
    arguments.positional = right.as_list() != nullptr && right.as_list()->is_tuple
                               ? right.as_list()->items
                               : std::vector<Value>{right};
    return Value(printf_format(*format, arguments));
  }
  refuse_operands(name, left, right);
}

Value negated(const Value& value) {
  if (const auto integer = integer_of(value)) {
    std::int64_t result = 0;
    return Value::integer(checked(__builtin_sub_overflow(std::int64_t{0}, *integer, &result), result));
  }
  if (const auto number = number_of(value)) return Value(Value::Variant(-*number));
  throw TemplateError(fmt::format("bad operand type for unary -: '{}'", type_name(value)));
}

bool contains(const Value& container, const Value& member) {
  if (const auto* text = container.as<MarkedText>()) {
    const auto* const part = member.as<MarkedText>();
    if (part == nullptr)
      throw TemplateError(
          fmt::format("'in <string>' requires string as left operand, not {}", type_name(member)));
    return text->bytes().find(part->bytes()) != std::string::npos;
  }
  if (const Dict* dict = container.as_dict()) return dict->find(member) != nullptr;
  if (container.as_list() == nullptr && !container.is_undefined()) {
    throw TemplateError(fmt::format("argument of type '{}' is not iterable", type_name(container)));
  }
  const std::vector<Value> items = items_of(container);
  return std::any_of(items.begin(), items.end(), [&](const Value& item) { return equal(item, member); });
}

std::int64_t length_of(const Value& value) {
  if (value.is_undefined()) return 0;
  if (const auto* text = value.as<MarkedText>())
    return static_cast<std::int64_t>(to_code_points(text->bytes()).size());
  if (const List* list = value.as_list()) return static_cast<std::int64_t>(list->items.size());
  if (const Dict* dict = value.as_dict()) return static_cast<std::int64_t>(dict->entries.size());
  throw TemplateError(fmt::format("object of type '{}' has no len()", type_name(value)));
}

}  // namespace sextant::tokenizer
