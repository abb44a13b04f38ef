#include "backends/log_numbers.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/text.h"
#include "base/units.h"

namespace sextant::backends {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool in_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool is_digit_at(std::string_view text, std::size_t at) { return at < text.size() && is_digit(text[at]); }

/// A comma followed by exactly three digits: a thousands separator.
bool is_separator_at(std::string_view text, std::size_t at) {
  return at < text.size() && text[at] == ',' && is_digit_at(text, at + 1) && is_digit_at(text, at + 2) &&
         is_digit_at(text, at + 3) && !is_digit_at(text, at + 4);
}

/// A number as from_chars wants it; longer ones than any printed number are none.
class Draft {
 public:
  void add(char c) {
    if (size_ < text_.size()) text_[size_] = c;
    ++size_;
  }
  std::optional<double> value() const {
    if (size_ > text_.size()) return std::nullopt;
    double value = 0;
    const char* end = text_.data() + size_;
    const auto [rest, status] = std::from_chars(text_.data(), end, value);
    if (status != std::errc() || rest != end) return std::nullopt;
    return value;
  }

 private:
  std::array<char, 64> text_{};
  std::size_t size_ = 0;
};

/// "nan", "inf" or "infinity" at `at`, not as the start of a longer word; its length and value.
std::optional<std::pair<std::size_t, double>> word_number(std::string_view text, std::size_t at) {
  constexpr std::array<std::pair<std::string_view, double>, 3> kWords{{
      {"nan", std::numeric_limits<double>::quiet_NaN()},
      {"infinity", std::numeric_limits<double>::infinity()},
      {"inf", std::numeric_limits<double>::infinity()},
  }};
  for (const auto& [word, value] : kWords) {
    const std::size_t end = at + word.size();
    if (base::lower_case(text.substr(at, word.size())) != word) continue;
    if (end < text.size() && in_word(text[end])) continue;
    return std::pair{word.size(), value};
  }
  return std::nullopt;
}

/// Reads digits with a fraction and an exponent from `at` on; returns where they end, or `at` when no digit
/// is there.
std::size_t read_decimal(std::string_view text, std::size_t at, Draft& draft) {
  const std::size_t start = at;
  bool digits = false;
  std::size_t group = 0;  // digits since the start or the last separator: the first group has at most three
  bool separated = false;
  while (true) {
    if (is_digit_at(text, at)) {
      draft.add(text[at++]);
      digits = true;
      ++group;
    } else if (digits && is_separator_at(text, at) && (separated ? group == 3 : group <= 3)) {
      ++at;
      separated = true;
      group = 0;
    } else {
      break;
    }
  }
  if (at < text.size() && text[at] == '.' && (digits || is_digit_at(text, at + 1))) {
    draft.add(text[at++]);
    while (is_digit_at(text, at)) {
      draft.add(text[at++]);
      digits = true;
    }
  }
  if (!digits) return start;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t exponent = at + 1;
    const bool sign = exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-');
    if (is_digit_at(text, exponent + (sign ? 1 : 0))) {
      draft.add('e');
      if (sign && text[exponent] == '-') draft.add('-');
      exponent += sign ? 1 : 0;
      while (is_digit_at(text, exponent)) draft.add(text[exponent++]);
      at = exponent;
    }
  }
  return at;
}

}  // namespace

std::optional<double> take_number(std::string_view& text) {
  std::size_t at = text.find_first_not_of(' ');
  if (at == std::string_view::npos) return std::nullopt;
  const bool negative = text[at] == '-';
  if (negative || text[at] == '+') ++at;
  std::optional<double> value;
  if (const auto word = word_number(text, at)) {
    at += word->first;
    value = word->second;
  } else {
    Draft draft;
    const std::size_t end = read_decimal(text, at, draft);
    if (end == at) return std::nullopt;
    value = draft.value();
    at = end;
  }
  if (!value) return std::nullopt;
  text.remove_prefix(at);
  return negative ? -*value : *value;
}

std::optional<double> number_at(std::string_view text) { return take_number(text); }

std::optional<double> bytes_at(std::string_view text) {
  const std::optional<double> value = take_number(text);
  if (!value || !std::isfinite(*value) || *value < 0) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, double>, 9> kUnits{{
      {"GiB", base::kGiB},
      {"MiB", base::kMiB},
      {"KiB", base::kKiB},
      {"TiB", 1024 * base::kGiB},
      {"GB", base::kGiB},
      {"MB", base::kMiB},
      {"KB", base::kKiB},
      {"TB", 1024 * base::kGiB},
      {"B", 1},
  }};
  if (text.starts_with(' ')) text.remove_prefix(1);
  if (text.starts_with("bytes")) return value;
  for (const auto& [unit, bytes] : kUnits) {
    if (!text.starts_with(unit)) continue;
    if (text.size() > unit.size() && in_word(text[unit.size()])) return std::nullopt;
    return *value * bytes;
  }
  return std::nullopt;
}

std::optional<std::int64_t> count_at(std::string_view text) {
  const std::optional<double> value = number_at(text);
  // 2^53: beyond, doubles skip integers.
  if (!value || !(*value >= 0) || *value > 9007199254740992.0) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<std::string_view> after_label(std::string_view line, std::string_view label) {
  for (std::size_t at = line.find(label); at != std::string_view::npos; at = line.find(label, at + 1)) {
    if (at > 0 && in_word(line[at - 1])) continue;
    return line.substr(at + label.size());
  }
  return std::nullopt;
}

std::optional<double> labelled_number(std::string_view line, std::string_view label) {
  const std::optional<std::string_view> rest = after_label(line, label);
  return rest ? number_at(*rest) : std::nullopt;
}

}  // namespace sextant::backends
