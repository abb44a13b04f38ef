// Numbers and labels inside a line of a log. Every function reads its text once.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sextant::backends {

/// The number at the start of `text`, after blanks: sign, digits (with thousands separators: "12,345"),
/// fraction, exponent; or "nan", "inf" in any case. Advances `text` past it. Empty, and `text` as it was,
/// when there is none or it is too large for a double.
std::optional<double> take_number(std::string_view& text);

/// The same without advancing.
std::optional<double> number_at(std::string_view text);

/// A number with a unit of bytes: "70.00GiB", "4.32GB", "512 MiB", "86588 B". Units of 1024, whether they
/// are written with an i or not: PyTorch's users divide by 1024³ and print "GB". Empty without a unit.
std::optional<double> bytes_at(std::string_view text);

/// A finite number that is not negative, as a count; empty otherwise.
std::optional<std::int64_t> count_at(std::string_view text);

/// What follows `label` in `line`; `label` must not continue a word on its left ("step:" is not in
/// "global_step:"). Empty when there is none.
std::optional<std::string_view> after_label(std::string_view line, std::string_view label);

/// number_at() of after_label().
std::optional<double> labelled_number(std::string_view line, std::string_view label);

}  // namespace sextant::backends
