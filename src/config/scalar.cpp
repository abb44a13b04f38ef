#include "config/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"

namespace sextant::config {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view take_digits(std::string_view& text) {
  const auto end = std::ranges::find_if_not(text, is_digit);
  const auto count = static_cast<std::size_t>(end - text.begin());
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

// Whether `text` is `word` (given in lower case) as "word", "Word" or "WORD".
bool is_word(std::string_view text, std::string_view word) {
  if (text.size() != word.size() || base::lower_case(text) != word) return false;
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto rest = text.substr(1);
  return std::ranges::none_of(rest, is_upper) || (is_upper(text[0]) && std::ranges::all_of(rest, is_upper));
}

}  // namespace

bool is_null_word(std::string_view text) { return text.empty() || text == "~" || is_word(text, "null"); }

std::optional<bool> core_boolean(std::string_view text) {
  if (is_word(text, "true")) return true;
  if (is_word(text, "false")) return false;
  return std::nullopt;
}

std::optional<bool> yaml11_boolean(std::string_view text) {
  if (is_word(text, "yes") || is_word(text, "on")) return true;
  if (is_word(text, "no") || is_word(text, "off")) return false;
  return std::nullopt;
}

bool reads_as_other_than_text(std::string_view text) {
  if (is_null_word(text) || core_boolean(text) || yaml11_boolean(text)) return true;
  if (text == "<<" || text == "=") return true;               // merge and default keys of YAML 1.1
  if (is_word(text, "y") || is_word(text, "n")) return true;  // booleans of YAML 1.1, though not of PyYAML
  // Numbers of any base, dates and times all begin with a digit, a sign or a point.
  if (is_digit(text[0])) return true;
  return text.size() > 1 && (text[0] == '+' || text[0] == '-' || text[0] == '.') &&
         (is_digit(text[1]) || text[1] == '.' || is_word(text.substr(1), "inf") || is_word(text, ".nan"));
}

std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal number;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    number.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  number.integer_digits = take_digits(text);
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    number.fraction_digits = take_digits(text);
  }
  if (number.integer_digits.empty() && number.fraction_digits.empty()) return std::nullopt;
  if (text.empty()) return number;

  if (text[0] != 'e' && text[0] != 'E') return std::nullopt;
  text.remove_prefix(1);
  const bool negative_exponent = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
  const std::string_view digits = take_digits(text);
  if (digits.empty() || !text.empty()) return std::nullopt;
  constexpr std::int64_t kLargest = 1'000'000'000;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number.exponent);
  if (error != std::errc() || number.exponent > kLargest) number.exponent = kLargest;
  if (negative_exponent) number.exponent = -number.exponent;
  return number;
}

}  // namespace sextant::config
