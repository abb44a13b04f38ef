// The values of chat templates: Python's, as Jinja templates see them, and text that remembers who wrote it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sextant::tokenizer {

/// What stops a rendering: the template called raise_exception, or it did what Python does not allow.
class TemplateError : public std::runtime_error {
 public:
  explicit TemplateError(const std::string& message, bool raised = false)
      : std::runtime_error(message), raised_(raised) {}
  bool raised() const { return raised_; }  ///< by raise_exception

 private:
  bool raised_;
};

/// Text of which every byte is the template's or the users'. All operations keep that apart; where a result
/// mixes (a changed case, a format), it is the users' as soon as some of its input is.
class MarkedText {
 public:
  MarkedText() = default;
  MarkedText(std::string bytes, bool user = false);
  MarkedText(const char* bytes) : MarkedText(std::string(bytes)) {}

  const std::string& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  bool any_user() const { return user_.find('\1') != std::string::npos; }
  bool is_user(std::size_t at) const { return !user_.empty() && user_[at] == '\1'; }

  MarkedText& append(const MarkedText& other);
  MarkedText& append(std::string_view bytes, bool user);
  MarkedText slice(std::size_t begin, std::size_t count = std::string::npos) const;

 private:
  std::string bytes_;
  std::string user_;  ///< one '\1' or '\0' a byte; empty when all is the template's
};

class Value;
struct Scope;

struct Undefined {
  std::string name;  ///< for messages
};
struct None {};
/// An integer beyond 64 bits; it can be printed.
struct BigInteger {
  std::string digits;
};
struct List {
  std::vector<Value> items;
  bool is_tuple = false;
};
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  bool is_namespace = false;  ///< {% set ns.x = … %} may change it

  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(Value key, Value value);
};
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  /// The argument at `index` or of that name; null when neither is given.
  const Value* find(std::size_t index, std::string_view name) const;
};
struct Callable {
  std::string name;
  std::function<Value(const Arguments&)> call;
};
/// `loop` inside a for.
struct Loop {
  std::shared_ptr<const List> items;
  std::size_t index = 0;
  int depth = 1;
  std::optional<std::vector<Value>> last_changed;
  std::shared_ptr<const Callable> recurse;
};

class Value {
 public:
  using Variant =
      std::variant<Undefined, None, bool, std::int64_t, double, BigInteger, MarkedText, std::shared_ptr<List>,
                   std::shared_ptr<Dict>, std::shared_ptr<Callable>, std::shared_ptr<Loop>>;

  Value() : data(Undefined{}) {}
  Value(Variant value) : data(std::move(value)) {}
  static Value list(std::vector<Value> items, bool is_tuple = false);
  static Value text(std::string bytes, bool user = false) {
    return Value(MarkedText(std::move(bytes), user));
  }
  static Value integer(std::int64_t number) { return Value(Variant(number)); }
  static Value boolean(bool truth) { return Value(Variant(truth)); }

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&data);
  }
  const List* as_list() const;
  const Dict* as_dict() const;
  bool is_undefined() const { return as<Undefined>() != nullptr; }
  bool is_none() const { return as<None>() != nullptr; }

  Variant data;
};

bool is_true(const Value& value);
/// Python's ==.
bool equal(const Value& a, const Value& b);
/// Python's <; throws TemplateError for types that have no order.
bool less(const Value& a, const Value& b);
/// Integers and booleans.
std::optional<std::int64_t> integer_of(const Value& value);
/// Integers, booleans and floats.
std::optional<double> number_of(const Value& value);
/// "str", "int", "list", …
std::string type_name(const Value& value);
/// The items of what Python iterates over: lists, keys of dicts, characters of text; nothing for undefined.
/// Throws for the rest.
std::vector<Value> items_of(const Value& value);

/// Python's str() and repr(): True, None, 1.0, ['a', 1], {'a': 1}, (1,), 1e+16.
MarkedText to_text(const Value& value);
MarkedText representation(const Value& value);
std::string float_text(double number);

struct JsonStyle {
  bool ascii = false;
  bool sort_keys = false;
  std::optional<int> indent;
  MarkedText item_separator = ", ";
  MarkedText key_separator = ": ";
};
/// json.dumps. Throws TemplateError for what JSON has not.
MarkedText to_json(const Value& value, const JsonStyle& style);

}  // namespace sextant::tokenizer
