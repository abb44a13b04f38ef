#include "backends/primus_scalars.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backends/megatron_keys.h"
#include "config/scalar.h"

namespace sextant::backends {
namespace {

// A scanner over one scalar: each take consumes what it matches.
struct Scan {
  std::string_view rest;

  bool done() const { return rest.empty(); }
  bool take(char c) {
    if (rest.empty() || rest[0] != c) return false;
    rest.remove_prefix(1);
    return true;
  }
  bool take_sign() { return take('-') || take('+'); }
  template <typename Predicate>
  std::size_t take_while(Predicate predicate) {
    const auto end = std::ranges::find_if_not(rest, predicate);
    const auto count = static_cast<std::size_t>(end - rest.begin());
    rest.remove_prefix(count);
    return count;
  }
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_digit_or_bar(char c) { return is_digit(c) || c == '_'; }
bool is_octal_or_bar(char c) { return (c >= '0' && c <= '7') || c == '_'; }
bool is_binary_or_bar(char c) { return c == '0' || c == '1' || c == '_'; }
bool is_hexadecimal(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_hexadecimal_or_bar(char c) { return is_hexadecimal(c) || c == '_'; }

// (:[0-5]?[0-9])+, the further places of a number to the base 60.
bool take_sexagesimal(Scan& scan) {
  bool any = false;
  while (scan.take(':')) {
    const std::string_view before = scan.rest;
    const std::size_t digits = scan.take_while(is_digit);
    if (digits == 0 || digits > 2 || (digits == 2 && before[0] > '5')) return false;
    any = true;
  }
  return any;
}

// PyYAML's !!int: binary, octal with a leading 0, decimal, hexadecimal, base 60.
bool is_pyyaml_integer(std::string_view text) {
  Scan scan{text};
  scan.take_sign();
  Scan prefixed = scan;
  if (prefixed.take('0')) {
    if (prefixed.done()) return true;
    if (prefixed.take('b')) return prefixed.take_while(is_binary_or_bar) > 0 && prefixed.done();
    if (prefixed.take('x')) return prefixed.take_while(is_hexadecimal_or_bar) > 0 && prefixed.done();
    prefixed.take_while(is_octal_or_bar);
    return prefixed.done();
  }
  if (scan.done() || !is_digit(scan.rest[0])) return false;
  scan.take_while(is_digit_or_bar);
  return scan.done() || (take_sexagesimal(scan) && scan.done());
}

// PyYAML's !!float: needs a point, and a sign in the exponent.
bool is_pyyaml_number(std::string_view text) {
  Scan scan{text};
  scan.take_sign();
  for (const std::string_view word : {".inf", ".Inf", ".INF"}) {
    if (scan.rest == word) return true;
  }
  for (const std::string_view word : {".nan", ".NaN", ".NAN"}) {
    if (text == word) return true;
  }
  const bool digit_first = !scan.done() && is_digit(scan.rest[0]);
  if (digit_first) {
    scan.take_while(is_digit_or_bar);
    Scan sexagesimal = scan;
    if (take_sexagesimal(sexagesimal) && sexagesimal.take('.')) {
      sexagesimal.take_while(is_digit_or_bar);
      return sexagesimal.done();
    }
  }
  if (!scan.take('.')) return false;
  const bool digit_after = !scan.done() && is_digit(scan.rest[0]);
  if (!digit_first && !digit_after) return false;
  scan.take_while(is_digit_or_bar);
  if (scan.take('e') || scan.take('E')) {
    if (!scan.take_sign()) return false;
    if (scan.take_while(is_digit) == 0) return false;
  }
  return scan.done();
}

// A date, and whatever follows it: PyYAML makes a datetime of "2024-05-01".
bool is_pyyaml_date(std::string_view text) {
  Scan scan{text};
  if (scan.take_while(is_digit) != 4 || !scan.take('-')) return false;
  const std::size_t month = scan.take_while(is_digit);
  if (month < 1 || month > 2 || !scan.take('-')) return false;
  const std::size_t day = scan.take_while(is_digit);
  return day >= 1 && day <= 2 && (scan.done() || !scan.take('-'));
}

std::string_view name(LoadedType type) {
  switch (type) {
    case LoadedType::kNull:
      return "null";
    case LoadedType::kBoolean:
      return "a boolean";
    case LoadedType::kInteger:
      return "an integer";
    case LoadedType::kNumber:
      return "a floating-point number";
    case LoadedType::kText:
      return "text";
    case LoadedType::kDate:
      return "a date";
  }
  return "";
}

// How to write `node` so that both loaders agree, or "" when there is no short advice.
std::string advice(const config::Node& node, KeyType type) {
  if (type == KeyType::kText) return fmt::format("; write \"{}\" in quotes", node.text);
  if (type == KeyType::kBoolean) return "; write true or false";
  if (type == KeyType::kInteger) return "; write the plain digits";
  if (type == KeyType::kNumber) return "; write it with a point and a signed exponent (1.0e-5)";
  return "";
}

// Whether Primus hands on what the key's type means.
bool agrees(LoadedType loaded, KeyType type, const config::Node& node) {
  switch (type) {
    case KeyType::kInteger:
      return loaded == LoadedType::kInteger;
    case KeyType::kNumber:
      return loaded == LoadedType::kInteger || loaded == LoadedType::kNumber;
    case KeyType::kBoolean:
      return loaded == LoadedType::kBoolean || node.text == "0" || node.text == "1";
    case KeyType::kText:
      return loaded == LoadedType::kText;
    case KeyType::kList:
    case KeyType::kOther:
      return loaded == core_type(node.text);
  }
  return true;
}

bool has_leading_zero(std::string_view text) {
  const std::optional<config::Decimal> number = config::parse_decimal(text);
  return number && number->has_leading_zero() && number->fraction_digits.empty();
}

void warn_of_scalar(std::string_view key, const config::Node& written, const config::Node& substituted,
                    std::vector<std::string>& warnings) {
  const bool has_variable = written.text.find("${") != std::string::npos;
  if (written.quoted && !has_variable) return;
  const config::Node& node = has_variable ? substituted : written;
  const std::string place = written.position.text();
  const MegatronKey* known = find_megatron_key(key);
  if (has_variable && config::is_null_word(substituted.text)) {
    // Primus turns booleans and numbers back after replacing a variable, but not null. Of keys without
    // influence (data paths are often written so) nothing is said.
    if (known == nullptr) return;
    const bool empty = substituted.text.empty() && written.text.find(":}") != std::string::npos;
    warnings.push_back(fmt::format("{}: {}: Primus reads {} as {}, not as null", place, key, written.text,
                                   empty ? "the empty text" : "the text \"null\""));
    return;
  }
  const KeyType type = known == nullptr ? KeyType::kOther : known->type;
  const LoadedType loaded = has_variable ? substituted_type(node.text) : pyyaml_type(node.text);
  if (!has_variable && loaded == LoadedType::kNull) return;
  if (!agrees(loaded, type, node)) {
    warnings.push_back(fmt::format("{}: {}: Primus's loader takes {} for {}{}", place, key, node.text,
                                   name(loaded), advice(node, type)));
  } else if (!has_variable && loaded == LoadedType::kInteger && has_leading_zero(node.text)) {
    warnings.push_back(fmt::format(
        "{}: {}: Primus's loader reads {} to the base 8; leave the leading zero out", place, key, node.text));
  }
}

}  // namespace

LoadedType pyyaml_type(std::string_view plain) {
  if (config::is_null_word(plain)) return LoadedType::kNull;
  if (config::core_boolean(plain) || config::yaml11_boolean(plain)) return LoadedType::kBoolean;
  if (is_pyyaml_integer(plain)) return LoadedType::kInteger;
  if (is_pyyaml_number(plain)) return LoadedType::kNumber;
  if (is_pyyaml_date(plain)) return LoadedType::kDate;
  return LoadedType::kText;
}

LoadedType core_type(std::string_view plain) {
  if (config::is_null_word(plain)) return LoadedType::kNull;
  if (config::core_boolean(plain)) return LoadedType::kBoolean;
  if (plain.starts_with("0x")) {
    return plain.size() > 2 && std::ranges::all_of(plain.substr(2), is_hexadecimal) ? LoadedType::kInteger
                                                                                    : LoadedType::kText;
  }
  if (plain.starts_with("0o")) {
    const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
    return plain.size() > 2 && std::ranges::all_of(plain.substr(2), is_octal) ? LoadedType::kInteger
                                                                              : LoadedType::kText;
  }
  if (config::parse_decimal(plain)) {
    return plain.find_first_of(".eE") == std::string_view::npos ? LoadedType::kInteger : LoadedType::kNumber;
  }
  return is_pyyaml_number(plain) && plain.find_first_of("iInN") != std::string_view::npos
             ? LoadedType::kNumber
             : LoadedType::kText;
}

LoadedType substituted_type(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (lower == "true" || lower == "false") return LoadedType::kBoolean;
  // -?digits, or a decimal with point, exponent or both; a plus sign is not accepted.
  if (text.starts_with('+') || !config::parse_decimal(text)) return LoadedType::kText;
  return text.find_first_of(".eE") == std::string_view::npos ? LoadedType::kInteger : LoadedType::kNumber;
}

std::vector<std::string> loader_warnings(const config::Node& written, const config::Node& substituted) {
  std::vector<std::string> warnings;
  for (const auto& [key, node] : written.entries) {
    const config::Node* after = substituted.find(key);
    if (after == nullptr) continue;
    if (node.kind == config::Node::Kind::kScalar) {
      warn_of_scalar(key, node, *after, warnings);
    } else if (node.is_mapping()) {
      const std::vector<std::string> inner = loader_warnings(node, *after);
      warnings.insert(warnings.end(), inner.begin(), inner.end());
    }
  }
  return warnings;
}

}  // namespace sextant::backends
