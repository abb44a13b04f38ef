// Typed reads: the reader's type decides what a scalar's raw text means (docs/design/config.md).
#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "config/node.h"
#include "config/scalar.h"

namespace sextant::config {
namespace {

// "the text \"abc\"", "a mapping": what stands there, for the end of a message.
std::string description(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing (null)";
    case Node::Kind::kSequence:
      return "a sequence";
    case Node::Kind::kMapping:
      return "a mapping";
    case Node::Kind::kScalar:
      break;
  }
  if (!node.quoted && core_boolean(node.text)) return "the boolean " + node.text;
  constexpr std::size_t kShown = 60;
  if (node.text.size() <= kShown) return "\"" + node.text + "\"";
  std::size_t end = kShown;
  while (end > 0 && (static_cast<unsigned char>(node.text[end]) & 0xC0U) == 0x80U) --end;
  return "\"" + node.text.substr(0, end) + "...\"";
}

[[noreturn]] void refuse(const Node& node, std::string_view wanted, std::string_view hint = {}) {
  std::string message = fmt::format("expected {}, found {}", wanted, description(node));
  if (!hint.empty()) message += fmt::format("; {}", hint);
  throw base::UserError(node.position, node.path, message);
}

constexpr std::string_view kLeadingZeroHint =
    "a leading zero means base 8 to some YAML loaders and base 10 to others: leave it out";

Decimal require_decimal(const Node& node, std::string_view wanted) {
  if (node.kind != Node::Kind::kScalar) refuse(node, wanted);
  const std::optional<Decimal> number = parse_decimal(node.text);
  if (!number) {
    if (node.text.find('_') != std::string::npos) refuse(node, wanted, "write the digits without \"_\"");
    if (node.text.starts_with("0x") || node.text.starts_with("0o") || node.text.starts_with("0b")) {
      refuse(node, wanted, "write it in decimal");
    }
    refuse(node, wanted);
  }
  if (number->has_leading_zero()) refuse(node, wanted, kLeadingZeroHint);
  return *number;
}

}  // namespace

std::int64_t as_integer(const Node& node) {
  constexpr std::string_view kWanted = "an integer";
  const Decimal number = require_decimal(node, kWanted);
  std::string digits = number.integer_digits + number.fraction_digits;
  std::int64_t zeros = number.exponent - static_cast<std::int64_t>(number.fraction_digits.size());
  digits.erase(0, digits.find_first_not_of('0'));
  if (digits.empty()) return 0;
  const std::size_t significant = digits.find_last_not_of('0') + 1;
  zeros += static_cast<std::int64_t>(digits.size() - significant);
  digits.resize(significant);
  if (zeros < 0) refuse(node, kWanted, "it has a fraction");

  constexpr std::string_view kRangeHint = "it must lie between -2^63 and 2^63 - 1";
  constexpr std::int64_t kMostDigits = std::numeric_limits<std::int64_t>::digits10 + 1;
  if (static_cast<std::int64_t>(digits.size()) + zeros > kMostDigits) refuse(node, kWanted, kRangeHint);
  digits.append(static_cast<std::size_t>(zeros), '0');
  if (number.negative) digits.insert(0, "-");
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc()) refuse(node, kWanted, kRangeHint);
  return value;
}

double as_number(const Node& node) {
  constexpr std::string_view kWanted = "a number";
  if (node.kind == Node::Kind::kScalar) {
    std::string_view magnitude = node.text;
    const bool negative = magnitude.starts_with('-');
    if (negative || magnitude.starts_with('+')) magnitude.remove_prefix(1);
    if (magnitude == ".inf" || magnitude == ".Inf" || magnitude == ".INF") {
      const double infinity = std::numeric_limits<double>::infinity();
      return negative ? -infinity : infinity;
    }
  }
  require_decimal(node, kWanted);
  std::string_view text = node.text;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) refuse(node, kWanted, "it does not fit a 64-bit floating-point number");
  return value;
}

bool as_boolean(const Node& node, bool yaml11) {
  const std::string_view wanted = yaml11 ? "true, false, yes, no, on or off" : "true or false";
  if (node.kind != Node::Kind::kScalar) refuse(node, wanted);
  std::optional<bool> value = core_boolean(node.text);
  if (!value && yaml11) value = yaml11_boolean(node.text);
  if (!value) refuse(node, wanted);
  if (node.quoted)
    refuse(node, wanted, "in quotes it is text, which Python takes for true: remove the quotes");
  return *value;
}

std::string as_text(const Node& node) {
  if (node.kind != Node::Kind::kScalar) refuse(node, "text");
  return node.text;
}

const Node& require_mapping(const Node& node) {
  if (node.kind != Node::Kind::kMapping) refuse(node, "a mapping (`key: value` lines)");
  return node;
}

const Node& require_sequence(const Node& node) {
  if (node.kind != Node::Kind::kSequence) refuse(node, "a sequence (`- item` lines)");
  return node;
}

}  // namespace sextant::config
