// Values as Python prints them, and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tokenizer/template_value.h"
#include "tokenizer/unicode.h"

namespace sextant::tokenizer {
namespace {

constexpr int kDeepest = 200;

/// Python's str.isprintable for one character.
bool is_printable(char32_t code) {
  constexpr CategorySet kHidden = bits_of(Category::kZs, Category::kCo) | bit_of(Category::kCn);
  return code == ' ' || !is_in(kHidden, code);
}

void append_quoted(MarkedText& out, const MarkedText& text) {
  const std::string& bytes = text.bytes();
  const bool user = text.any_user();
  const char quote =
      bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos ? '"' : '\'';
  std::string quoted(1, quote);
  for (std::size_t at = 0; at < bytes.size();) {
    const Character character = character_at(bytes, at);
    const char32_t code = character.code;
    if (code == static_cast<char32_t>(quote) || code == '\\') {
      quoted += '\\';
      quoted += static_cast<char>(code);
    } else if (code == '\n' || code == '\r' || code == '\t') {
      quoted += code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t";
    } else if (is_printable(code)) {
      quoted.append(bytes, at, character.bytes);
    } else {
      quoted += code < 0x100     ? fmt::format("\\x{:02x}", static_cast<unsigned>(code))
                : code < 0x10000 ? fmt::format("\\u{:04x}", static_cast<unsigned>(code))
                                 : fmt::format("\\U{:08x}", static_cast<unsigned>(code));
    }
    at += character.bytes;
  }
  out.append(quoted + quote, user);
}

void append_representation(MarkedText& out, const Value& value, int depth);

void append_items(MarkedText& out, const std::vector<Value>& items, int depth) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(", ", false);
    append_representation(out, items[i], depth);
  }
}

void append_dict(MarkedText& out, const Dict& dict, int depth) {
  out.append("{", false);
  bool first = true;
  for (const auto& [key, value] : dict.entries) {
    if (!first) out.append(", ", false);
    first = false;
    append_representation(out, key, depth);
    out.append(": ", false);
    append_representation(out, value, depth);
  }
  out.append("}", false);
}

void append_representation(MarkedText& out, const Value& value, int depth) {
  if (depth > kDeepest) throw TemplateError("a value is nested too deep to print");
  if (const auto* text = value.as<MarkedText>()) {
    append_quoted(out, *text);
  } else if (const List* list = value.as_list()) {
    out.append(list->is_tuple ? "(" : "[", false);
    append_items(out, list->items, depth + 1);
    if (list->is_tuple && list->items.size() == 1) out.append(",", false);
    out.append(list->is_tuple ? ")" : "]", false);
  } else if (const Dict* dict = value.as_dict()) {
    append_dict(out, *dict, depth + 1);
  } else if (value.is_undefined()) {
    out.append("Undefined", false);
  } else {
    out.append(to_text(value));
  }
}

void append_json_text(MarkedText& out, const MarkedText& text, bool ascii) {
  const std::string& bytes = text.bytes();
  std::string quoted = "\"";
  const auto append_unit = [&quoted](unsigned unit) { quoted += fmt::format("\\u{:04x}", unit); };
  for (std::size_t at = 0; at < bytes.size();) {
    const Character character = character_at(bytes, at);
    const auto code = static_cast<unsigned>(character.code);
    static constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
    static constexpr std::string_view kLetters = "\"\\bfnrt";
    const std::size_t escape = code < 128 ? kEscaped.find(static_cast<char>(code)) : std::string_view::npos;
    if (escape != std::string_view::npos) {
      quoted += '\\';
      quoted += kLetters[escape];
    } else if (code < 0x20 || (ascii && code >= 0x7f && code < 0x10000)) {
      append_unit(code);
    } else if (ascii && code >= 0x10000) {
      append_unit(0xd800 + ((code - 0x10000) >> 10U));
      append_unit(0xdc00 + ((code - 0x10000) & 0x3ffU));
    } else {
      quoted.append(bytes, at, character.bytes);
    }
    at += character.bytes;
  }
  out.append(quoted + "\"", text.any_user());
}

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}

  MarkedText out;

  void write(const Value& value, int depth) {
    if (depth > kDeepest) throw TemplateError("a value is nested too deep for JSON");
    if (const auto* text = value.as<MarkedText>()) return append_json_text(out, *text, style_.ascii);
    if (const auto* truth = value.as<bool>()) return void(out.append(*truth ? "true" : "false", false));
    if (value.is_none()) return void(out.append("null", false));
    if (const auto* number = value.as<double>()) return void(out.append(json_float(*number), false));
    if (number_of(value)) return void(out.append(to_text(value)));
    if (const List* list = value.as_list()) return write_list(*list, depth);
    if (const Dict* dict = value.as_dict()) return write_dict(*dict, depth);
    throw TemplateError(fmt::format("Object of type {} is not JSON serializable", type_name(value)));
  }

 private:
  static std::string json_float(double number) {
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
    return float_text(number);
  }

  void line(int depth) {
    if (!style_.indent) return;
    out.append("\n" + std::string(static_cast<std::size_t>(std::max(0, *style_.indent * depth)), ' '), false);
  }

  void write_list(const List& list, int depth) {
    if (list.items.empty()) return void(out.append("[]", false));
    out.append("[", false);
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out.append(style_.item_separator);
      line(depth + 1);
      write(list.items[i], depth + 1);
    }
    line(depth);
    out.append("]", false);
  }

  void write_dict(const Dict& dict, int depth) {
    if (dict.entries.empty()) return void(out.append("{}", false));
    auto entries = dict.entries;
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [](const auto& a, const auto& b) { return less(a.first, b.first); });
    }
    out.append("{", false);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out.append(style_.item_separator);
      line(depth + 1);
      write_key(entries[i].first);
      out.append(style_.key_separator);
      write(entries[i].second, depth + 1);
    }
    line(depth);
    out.append("}", false);
  }

  void write_key(const Value& key) {
    if (const auto* text = key.as<MarkedText>()) return append_json_text(out, *text, style_.ascii);
    if (!number_of(key) && !key.is_none()) {
      throw TemplateError(fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
    }
    out.append("\"", false);
    write(key, 0);
    out.append("\"", false);
  }

  const JsonStyle& style_;
};

}  // namespace

// Python's repr of a float: the shortest digits that read back equal, with an exponent below -4 and from 16
// on.
std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::string shortest = fmt::format("{}", number);
  const double magnitude = std::fabs(number);
  if (magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16))
    return shortest;  // fmt writes 1e+16, 1e-05 as Python
  if (shortest.find_first_of(".e") == std::string::npos) shortest += ".0";
  return shortest;
}

MarkedText to_text(const Value& value) {
  if (const auto* text = value.as<MarkedText>()) return *text;
  if (value.is_undefined()) return {};
  if (value.is_none()) return "None";
  if (const auto* truth = value.as<bool>()) return *truth ? "True" : "False";
  if (const auto* integer = value.as<std::int64_t>()) return fmt::format("{}", *integer);
  if (const auto* number = value.as<double>()) return float_text(*number);
  if (const auto* big = value.as<BigInteger>()) return big->digits;
  if (const auto* callable = value.as<std::shared_ptr<Callable>>())
    return fmt::format("<function {}>", (*callable)->name);
  if (value.as<std::shared_ptr<Loop>>() != nullptr) return "<LoopContext>";
  return representation(value);
}

MarkedText representation(const Value& value) {
  MarkedText out;
  append_representation(out, value, 0);
  return out;
}

MarkedText to_json(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.write(value, 0);
  return std::move(writer.out);
}

}  // namespace sextant::tokenizer
