// Methods of Python's str.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tokenizer/template_functions.h"
#include "tokenizer/unicode.h"

namespace sextant::tokenizer {
namespace {

using Method = Value (*)(const MarkedText&, const Arguments&);
constexpr std::size_t kNone = std::string::npos;

/// Every character mapped; the result is the users' where the character was.
template <typename Map>
MarkedText mapped(const MarkedText& text, const Map& map) {
  MarkedText out;
  const std::string& bytes = text.bytes();
  for (std::size_t at = 0; at < bytes.size();) {
    const Character character = character_at(bytes, at);
    std::string result;
    map(character.code, result);
    out.append(result, text.is_user(at));
    at += character.bytes;
  }
  return out;
}

void append_codes(std::string& out, std::span<const std::uint32_t> codes, char32_t otherwise) {
  if (codes.empty()) append_utf8(out, otherwise);
  for (const std::uint32_t code : codes) append_utf8(out, code);
}

bool is_cased(char32_t code) {
  return is_in(bit_of(Category::kLu) | bit_of(Category::kLl) | bit_of(Category::kLt), code);
}

bool is_python_space(char32_t code) { return is_white_space(code) || (code >= 0x1c && code <= 0x1f); }

MarkedText titled(const MarkedText& text) {
  bool inside = false;
  return mapped(text, [&inside](char32_t code, std::string& out) {
    append_codes(out, inside ? lower_case_of(code) : title_case_of(code), code);
    inside = is_cased(code);
  });
}

std::int64_t integer_argument(const Arguments& arguments, std::size_t index, std::string_view name,
                              std::int64_t otherwise) {
  const Value* const value = arguments.find(index, name);
  if (value == nullptr || value->is_none()) return otherwise;
  const auto number = integer_of(*value);
  if (!number)
    throw TemplateError(fmt::format("'{}' object cannot be interpreted as an integer", type_name(*value)));
  return *number;
}

Value list_of(std::vector<MarkedText> parts) {
  std::vector<Value> items;
  for (MarkedText& part : parts) items.emplace_back(std::move(part));
  return Value::list(std::move(items));
}

std::vector<MarkedText> split_at_spaces(const MarkedText& text, std::int64_t most, bool from_right) {
  std::vector<std::pair<std::size_t, std::size_t>> words;
  const std::string& bytes = text.bytes();
  std::size_t begin = kNone;
  for (std::size_t at = 0; at <= bytes.size();) {
    const bool end = at == bytes.size();
    const Character character = end ? Character{' ', 1} : character_at(bytes, at);
    if (is_python_space(character.code)) {
      if (begin != kNone) words.emplace_back(begin, at);
      begin = kNone;
    } else if (begin == kNone) {
      begin = at;
    }
    at += character.bytes;
  }
  const auto kept = static_cast<std::size_t>(most);
  if (most >= 0 && words.size() > kept + 1) {
    if (from_right) {
      words.erase(words.begin() + 1, words.end() - static_cast<std::ptrdiff_t>(kept));
      words.front() = {words.front().first, 0};
      std::size_t last = kept == 0 ? bytes.size() : words[1].first;
      while (last > 0 && is_python_space(character_before(bytes, last).code))
        last -= character_before(bytes, last).bytes;
      words.front() = {0, last};
    } else {
      words.resize(kept + 1);
      words.back().second = bytes.size();  // trailing white space stays, as in Python, unless the rest is cut
      std::size_t& last = words.back().second;
      while (last > words.back().first && is_python_space(character_before(bytes, last).code)) {
        last -= character_before(bytes, last).bytes;
      }
    }
  }
  std::vector<MarkedText> parts;
  for (const auto& [first, last] : words) parts.push_back(text.slice(first, last - first));
  return parts;
}

Value split(const MarkedText& text, const Arguments& arguments, bool from_right) {
  const std::int64_t most = integer_argument(arguments, 1, "maxsplit", -1);
  const Value* const given = arguments.find(0, "sep");
  if (given == nullptr || given->is_none()) return list_of(split_at_spaces(text, most, from_right));
  const MarkedText& separator = text_argument(arguments, 0, "sep");
  if (separator.empty()) throw TemplateError("empty separator");
  const std::string& bytes = text.bytes();
  std::vector<MarkedText> parts;
  if (from_right) {
    std::size_t end = bytes.size();
    for (std::int64_t count = 0; most < 0 || count < most; ++count) {
      const std::size_t at =
          end < separator.size() ? kNone : bytes.rfind(separator.bytes(), end - separator.size());
      if (at == kNone) break;
      parts.push_back(text.slice(at + separator.size(), end - at - separator.size()));
      end = at;
    }
    parts.push_back(text.slice(0, end));
    std::reverse(parts.begin(), parts.end());
    return list_of(std::move(parts));
  }
  std::size_t begin = 0;
  for (std::int64_t count = 0; most < 0 || count < most; ++count) {
    const std::size_t at = bytes.find(separator.bytes(), begin);
    if (at == kNone) break;
    parts.push_back(text.slice(begin, at - begin));
    begin = at + separator.size();
  }
  parts.push_back(text.slice(begin));
  return list_of(std::move(parts));
}

bool begins_or_ends(const MarkedText& text, const Arguments& arguments, bool begins) {
  const Value* const given = arguments.find(0, "prefix");
  if (given == nullptr) throw TemplateError("startswith and endswith need a text");
  const std::vector<Value> options =
      given->as_list() != nullptr ? given->as_list()->items : std::vector<Value>{*given};
  return std::any_of(options.begin(), options.end(), [&](const Value& option) {
    const auto* const part = option.as<MarkedText>();
    if (part == nullptr) throw TemplateError("startswith and endswith need a text");
    return begins ? text.bytes().starts_with(part->bytes()) : text.bytes().ends_with(part->bytes());
  });
}

std::int64_t characters_before(const MarkedText& text, std::size_t at) {
  return static_cast<std::int64_t>(to_code_points(std::string_view(text.bytes()).substr(0, at)).size());
}

std::int64_t find(const MarkedText& text, const Arguments& arguments, bool last) {
  const std::string& part = text_argument(arguments, 0, "sub").bytes();
  const std::size_t at = last ? text.bytes().rfind(part) : text.bytes().find(part);
  return at == kNone ? -1 : characters_before(text, at);
}

std::int64_t count(const MarkedText& text, const Arguments& arguments) {
  const std::string& part = text_argument(arguments, 0, "sub").bytes();
  if (part.empty()) return characters_before(text, text.size()) + 1;
  std::int64_t found = 0;
  for (std::size_t at = text.bytes().find(part); at != kNone; at = text.bytes().find(part, at + part.size()))
    ++found;
  return found;
}

Value partition(const MarkedText& text, const Arguments& arguments, bool last) {
  const MarkedText& separator = text_argument(arguments, 0, "sep");
  if (separator.empty()) throw TemplateError("empty separator");
  const std::size_t at = last ? text.bytes().rfind(separator.bytes()) : text.bytes().find(separator.bytes());
  std::vector<Value> parts(3, Value(MarkedText()));
  if (at == kNone) {
    parts[last ? 2 : 0] = Value(text);
  } else {
    parts = {Value(text.slice(0, at)), Value(separator), Value(text.slice(at + separator.size()))};
  }
  return Value::list(std::move(parts), true);
}

template <typename Test>
bool all_are(const MarkedText& text, const Test& test) {
  const std::u32string codes = to_code_points(text.bytes());
  return !codes.empty() && std::all_of(codes.begin(), codes.end(), test);
}

/// '{} {0} {name}'.format(…): fields without format specifications.
Value brace_format(const MarkedText& text, const Arguments& arguments) {
  MarkedText out;
  std::size_t next = 0;
  const std::string& bytes = text.bytes();
  for (std::size_t at = 0; at < bytes.size();) {
    if ((bytes[at] == '{' || bytes[at] == '}') && at + 1 < bytes.size() && bytes[at + 1] == bytes[at]) {
      out.append(text.slice(at, 1));
      at += 2;
      continue;
    }
    if (bytes[at] != '{') {
      out.append(text.slice(at++, 1));
      continue;
    }
    const std::size_t end = bytes.find('}', at);
    if (end == kNone) throw TemplateError("expected '}' before end of string");
    const std::string name = bytes.substr(at + 1, end - at - 1);
    const bool is_number = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return c >= '0' && c <= '9';
    }) && name.size() < 6;
    const Value* const value = name.empty() ? arguments.find(next++, "")
                               : is_number  ? arguments.find(static_cast<std::size_t>(std::stoi(name)), "")
                                            : arguments.find(kNone, name);
    if (value == nullptr) throw TemplateError(fmt::format("no value for the field {{{}}} of format", name));
    out.append(to_text(*value));
    at = end + 1;
  }
  return Value(std::move(out));
}

Value removed(const MarkedText& text, const Arguments& arguments, bool prefix) {
  const std::string& part = text_argument(arguments, 0, "prefix").bytes();
  if (prefix) return Value(text.bytes().starts_with(part) ? text.slice(part.size()) : text);
  return Value(text.bytes().ends_with(part) ? text.slice(0, text.size() - part.size()) : text);
}

const std::map<std::string_view, Method>& methods() {
  using T = const MarkedText&;
  using A = const Arguments&;
  static const std::map<std::string_view, Method> table = {
      {"strip", [](T t, A a) { return Value(strip(t, a.find(0, "chars"), true, true)); }},
      {"lstrip", [](T t, A a) { return Value(strip(t, a.find(0, "chars"), true, false)); }},
      {"rstrip", [](T t, A a) { return Value(strip(t, a.find(0, "chars"), false, true)); }},
      {"split", [](T t, A a) { return split(t, a, false); }},
      {"rsplit", [](T t, A a) { return split(t, a, true); }},
      {"splitlines", [](T t, A) { return list_of(split_lines(t)); }},
      {"upper", [](T t, A) { return Value(upper_case(t)); }},
      {"lower", [](T t, A) { return Value(lower_case(t)); }},
      {"title", [](T t, A) { return Value(titled(t)); }},
      {"capitalize", [](T t, A) { return Value(capitalised(t)); }},
      {"startswith", [](T t, A a) { return Value::boolean(begins_or_ends(t, a, true)); }},
      {"endswith", [](T t, A a) { return Value::boolean(begins_or_ends(t, a, false)); }},
      {"find", [](T t, A a) { return Value::integer(find(t, a, false)); }},
      {"rfind", [](T t, A a) { return Value::integer(find(t, a, true)); }},
      {"index",
       [](T t, A a) {
         const std::int64_t at = find(t, a, false);
         if (at < 0) throw TemplateError("substring not found");
         return Value::integer(at);
       }},
      {"count", [](T t, A a) { return Value::integer(count(t, a)); }},
      {"replace",
       [](T t, A a) {
         return Value(replace(t, text_argument(a, 0, "old"), text_argument(a, 1, "new"),
                              integer_argument(a, 2, "count", -1)));
       }},
      {"join",
       [](T t, A a) {
         const Value* const items = a.find(0, "iterable");
         return Value(join(items == nullptr ? std::vector<Value>() : items_of(*items), t));
       }},
      {"partition", [](T t, A a) { return partition(t, a, false); }},
      {"rpartition", [](T t, A a) { return partition(t, a, true); }},
      {"format", brace_format},
      {"removeprefix", [](T t, A a) { return removed(t, a, true); }},
      {"removesuffix", [](T t, A a) { return removed(t, a, false); }},
      {"isdigit",
       [](T t, A) {
         return Value::boolean(all_are(t, [](char32_t c) { return is_in(bit_of(Category::kNd), c); }));
       }},
      {"isnumeric",
       [](T t, A) { return Value::boolean(all_are(t, [](char32_t c) { return is_in(kNumbers, c); })); }},
      {"isalpha",
       [](T t, A) { return Value::boolean(all_are(t, [](char32_t c) { return is_in(kLetters, c); })); }},
      {"isalnum",
       [](T t, A) {
         return Value::boolean(all_are(t, [](char32_t c) { return is_in(kLetters | kNumbers, c); }));
       }},
      {"isspace", [](T t, A) { return Value::boolean(all_are(t, is_python_space)); }},
      {"isupper",
       [](T t, A) {
         return Value::boolean(upper_case(t).bytes() == t.bytes() && lower_case(t).bytes() != t.bytes());
       }},
      {"islower",
       [](T t, A) {
         return Value::boolean(lower_case(t).bytes() == t.bytes() && upper_case(t).bytes() != t.bytes());
       }},
  };
  return table;
}

}  // namespace

std::optional<Value> text_method(const MarkedText& text, const std::string& name) {
  const auto found = methods().find(name);
  if (found == methods().end()) return std::nullopt;
  auto bound = std::make_shared<Callable>();
  bound->name = name;
  bound->call = [text, method = found->second](const Arguments& arguments) {
    return method(text, arguments);
  };
  return Value(Value::Variant(std::move(bound)));
}

MarkedText strip(const MarkedText& text, const Value* characters, bool left, bool right) {
  std::u32string set;
  const bool spaces = characters == nullptr || characters->is_none() || characters->is_undefined();
  if (!spaces) {
    const auto* const given = characters->as<MarkedText>();
    if (given == nullptr) throw TemplateError("strip needs a text or none");
    set = to_code_points(given->bytes());
  }
  const auto goes = [&](char32_t code) {
    return spaces ? is_python_space(code) : set.find(code) != std::u32string::npos;
  };
  std::size_t begin = 0;
  std::size_t end = text.size();
  while (left && begin < end && goes(character_at(text.bytes(), begin).code))
    begin += character_at(text.bytes(), begin).bytes;
  while (right && end > begin && goes(character_before(text.bytes(), end).code))
    end -= character_before(text.bytes(), end).bytes;
  return text.slice(begin, end - begin);
}

MarkedText replace(const MarkedText& text, const MarkedText& from, const MarkedText& to, std::int64_t most) {
  MarkedText out;
  std::size_t begin = 0;
  for (std::int64_t count = 0; most < 0 || count < most; ++count) {
    std::size_t at = text.bytes().find(from.bytes(), begin);
    if (from.empty()) {  // between all characters, as in Python
      if (count > 0) {
        if (begin >= text.size()) break;
        const std::size_t bytes = character_at(text.bytes(), begin).bytes;
        out.append(text.slice(begin, bytes));
        begin += bytes;
      }
      at = begin;
    }
    if (at == kNone) break;
    out.append(text.slice(begin, at - begin)).append(to);
    begin = at + from.size();
    if (out.size() > kMostBytes) throw TemplateError("the text becomes too long");
  }
  return out.append(text.slice(begin));
}

std::vector<MarkedText> split_lines(const MarkedText& text) {
  std::vector<MarkedText> lines;
  const std::string& bytes = text.bytes();
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const Character character = character_at(bytes, at);
    const char32_t code = character.code;
    const bool breaks = (code >= 0x0a && code <= 0x0d) || (code >= 0x1c && code <= 0x1e) || code == 0x85 ||
                        code == 0x2028 || code == 0x2029;
    const std::size_t line_end = at;
    at += character.bytes;
    if (!breaks) continue;
    if (code == '\r' && at < bytes.size() && bytes[at] == '\n') ++at;
    lines.push_back(text.slice(begin, line_end - begin));
    begin = at;
  }
  if (begin < bytes.size()) lines.push_back(text.slice(begin));
  return lines;
}

MarkedText upper_case(const MarkedText& text) {
  return mapped(text, [](char32_t code, std::string& out) { append_codes(out, upper_case_of(code), code); });
}

MarkedText lower_case(const MarkedText& text) {
  return mapped(text, [](char32_t code, std::string& out) { append_codes(out, lower_case_of(code), code); });
}

MarkedText capitalised(const MarkedText& text) {
  bool first = true;
  return mapped(text, [&first](char32_t code, std::string& out) {
    append_codes(out, first ? title_case_of(code) : lower_case_of(code), code);
    first = false;
  });
}

MarkedText join(const std::vector<Value>& items, const MarkedText& separator) {
  MarkedText out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(separator);
    out.append(to_text(items[i]));
    if (out.size() > kMostBytes) throw TemplateError("the text becomes too long");
  }
  return out;
}

MarkedText printf_format(const MarkedText& format, const Arguments& arguments) {
  MarkedText out;
  std::size_t next = 0;
  const std::string& bytes = format.bytes();
  for (std::size_t at = 0; at < bytes.size();) {
    if (bytes[at] != '%') {
      out.append(format.slice(at++, 1));
      continue;
    }
    const std::size_t end = bytes.find_first_not_of("0123456789.+- #", at + 1);
    if (end == kNone) throw TemplateError("incomplete format");
    const char kind = bytes[end];
    std::string flags = bytes.substr(at + 1, end - at - 1);
    at = end + 1;
    if (kind == '%') {
      out.append("%", false);
      continue;
    }
    const Value* const value = arguments.find(next++, "");
    if (value == nullptr) throw TemplateError("not enough arguments for format string");
    if (flags.size() > 8) throw TemplateError("format is too wide");
    if (kind == 's') {
      out.append(to_text(*value));
    } else if ((kind == 'd' || kind == 'i') && number_of(*value)) {
      out.append(fmt::format("{}", static_cast<std::int64_t>(*number_of(*value))), false);
    } else if ((kind == 'f' || kind == 'e' || kind == 'g') && number_of(*value)) {
      char buffer[512];
      const int length =
          std::snprintf(buffer, sizeof(buffer), ("%" + flags + kind).c_str(), *number_of(*value));
      out.append(std::string_view(buffer, static_cast<std::size_t>(std::clamp(length, 0, 511))), false);
    } else {
      throw TemplateError(fmt::format("unsupported format character '{}' for {}", kind, type_name(*value)));
    }
  }
  return out;
}

const MarkedText& text_argument(const Arguments& arguments, std::size_t index, std::string_view name) {
  const Value* const value = arguments.find(index, name);
  const auto* const text = value == nullptr ? nullptr : value->as<MarkedText>();
  if (text == nullptr) {
    throw TemplateError(value == nullptr ? fmt::format("the argument '{}' is missing", name)
                                         : fmt::format("'{}' must be str, not {}", name, type_name(*value)));
  }
  return *text;
}

}  // namespace sextant::tokenizer
