#include "tokenizer/template_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tokenizer/unicode.h"

namespace sextant::tokenizer {

MarkedText::MarkedText(std::string bytes, bool user) : bytes_(std::move(bytes)) {
  if (user) user_.assign(bytes_.size(), '\1');
}

MarkedText& MarkedText::append(const MarkedText& other) {
  if (!other.user_.empty() || !user_.empty()) {
    user_.resize(bytes_.size(), '\0');
    if (other.user_.empty()) {
      user_.append(other.bytes_.size(), '\0');
    } else {
      user_ += other.user_;
    }
  }
  bytes_ += other.bytes_;
  return *this;
}

MarkedText& MarkedText::append(std::string_view bytes, bool user) {
  if (user || !user_.empty()) {
    user_.resize(bytes_.size(), '\0');
    user_.append(bytes.size(), user ? '\1' : '\0');
  }
  bytes_ += bytes;
  return *this;
}

MarkedText MarkedText::slice(std::size_t begin, std::size_t count) const {
  MarkedText part;
  part.bytes_ = bytes_.substr(begin, count);
  if (!user_.empty()) part.user_ = user_.substr(begin, count);
  return part;
}

const Value* Dict::find(const Value& key) const {
  for (const auto& [own, value] : entries) {
    if (equal(own, key)) return &value;
  }
  return nullptr;
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& [own, value] : entries) {
    const MarkedText* const text = own.as<MarkedText>();
    if (text != nullptr && text->bytes() == key) return &value;
  }
  return nullptr;
}

void Dict::set(Value key, Value value) {
  for (auto& [own, old] : entries) {
    if (equal(own, key)) {
      old = std::move(value);
      return;
    }
  }
  entries.emplace_back(std::move(key), std::move(value));
}

const Value* Arguments::find(std::size_t index, std::string_view name) const {
  if (index < positional.size()) return &positional[index];
  for (const auto& [own, value] : named) {
    if (own == name) return &value;
  }
  return nullptr;
}

Value Value::list(std::vector<Value> items, bool is_tuple) {
  return Value(Variant(std::make_shared<List>(List{std::move(items), is_tuple})));
}

const List* Value::as_list() const {
  const auto* const list = as<std::shared_ptr<List>>();
  return list == nullptr ? nullptr : list->get();
}

const Dict* Value::as_dict() const {
  const auto* const dict = as<std::shared_ptr<Dict>>();
  return dict == nullptr ? nullptr : dict->get();
}

bool is_true(const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (const auto number = number_of(value)) return *number != 0;
  if (const auto* text = value.as<MarkedText>()) return !text->empty();
  if (const List* list = value.as_list()) return !list->items.empty();
  if (const Dict* dict = value.as_dict()) return dict->is_namespace || !dict->entries.empty();
  return true;
}

std::optional<std::int64_t> integer_of(const Value& value) {
  if (const auto* truth = value.as<bool>()) return *truth ? 1 : 0;
  if (const auto* number = value.as<std::int64_t>()) return *number;
  return std::nullopt;
}

std::optional<double> number_of(const Value& value) {
  if (const auto* number = value.as<double>()) return *number;
  if (const auto integer = integer_of(value)) return static_cast<double>(*integer);
  if (const auto* big = value.as<BigInteger>()) return std::strtod(big->digits.c_str(), nullptr);
  return std::nullopt;
}

bool equal(const Value& a, const Value& b) {
  if (integer_of(a) && integer_of(b)) return *integer_of(a) == *integer_of(b);
  if (number_of(a) && number_of(b)) return *number_of(a) == *number_of(b);
  if (a.data.index() != b.data.index()) return false;
  if (const auto* text = a.as<MarkedText>()) return text->bytes() == b.as<MarkedText>()->bytes();
  if (const List* list = a.as_list()) {
    const List& other = *b.as_list();
    return list->is_tuple == other.is_tuple &&
           std::equal(list->items.begin(), list->items.end(), other.items.begin(), other.items.end(), equal);
  }
  if (const Dict* dict = a.as_dict()) {
    const Dict& other = *b.as_dict();
    if (dict == &other) return true;
    return dict->entries.size() == other.entries.size() &&
           std::all_of(dict->entries.begin(), dict->entries.end(), [&](const auto& entry) {
             const Value* const found = other.find(entry.first);
             return found != nullptr && equal(entry.second, *found);
           });
  }
  if (const auto* callable = a.as<std::shared_ptr<Callable>>())
    return *callable == *b.as<std::shared_ptr<Callable>>();
  if (const auto* loop = a.as<std::shared_ptr<Loop>>()) return *loop == *b.as<std::shared_ptr<Loop>>();
  return true;  // None and None, undefined and undefined
}

bool less(const Value& a, const Value& b) {
  if (integer_of(a) && integer_of(b)) return *integer_of(a) < *integer_of(b);
  if (number_of(a) && number_of(b)) return *number_of(a) < *number_of(b);
  const auto* const text = a.as<MarkedText>();
  const auto* const other = b.as<MarkedText>();
  if (text != nullptr && other != nullptr)
    return text->bytes() < other->bytes();  // UTF-8 keeps code point order
  if (a.as_list() != nullptr && b.as_list() != nullptr) {
    const auto& left = a.as_list()->items;
    const auto& right = b.as_list()->items;
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(), less);
  }
  throw TemplateError(
      fmt::format("'<' not supported between instances of '{}' and '{}'", type_name(a), type_name(b)));
}

std::string type_name(const Value& value) {
  static constexpr const char* kNames[] = {"Undefined", "NoneType", "bool", "int",      "float", "int",
                                           "str",       "list",     "dict", "function", "loop"};
  if (value.as_list() != nullptr && value.as_list()->is_tuple) return "tuple";
  return kNames[value.data.index()];
}

std::vector<Value> items_of(const Value& value) {
  if (value.is_undefined()) return {};
  if (const List* list = value.as_list()) return list->items;
  std::vector<Value> items;
  if (const Dict* dict = value.as_dict()) {
    for (const auto& [key, own] : dict->entries) items.push_back(key);
    return items;
  }
  if (const auto* text = value.as<MarkedText>()) {
    for (std::size_t at = 0; at < text->size();) {
      const std::size_t bytes = character_at(text->bytes(), at).bytes;
      items.emplace_back(text->slice(at, bytes));
      at += bytes;
    }
    return items;
  }
  throw TemplateError(fmt::format("'{}' object is not iterable", type_name(value)));
}

}  // namespace sextant::tokenizer
