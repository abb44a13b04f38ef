// Questions about YAML source text that yaml-cpp does not ask: it reads a few documents that YAML 1.2.2 does
// not allow, each a likely slip (a forgotten quote, colon or value) that would change the meaning in silence.
//
// Offsets are bytes; `text` has "\n" line ends.
#pragma once

#include <cstddef>
#include <string_view>

namespace sextant::config {

/// Whether the scalar at `offset` (tag and anchor may stand before it) opens a quote that nothing closes.
/// yaml-cpp takes the end of the text for the closing quote when the text ends in a line break.
bool opens_unclosed_quote(std::string_view text, std::size_t offset);

/// Whether a flow sequence has an empty place at `offset`, as in `[1,,2]`. yaml-cpp reads a null.
bool is_empty_flow_item(std::string_view text, std::size_t offset);

/// Whether `offset` is the first thing on its line.
bool begins_its_line(std::string_view text, std::size_t offset);

/// Whether the key at `offset` is announced by "? ".
bool is_explicit_key(std::string_view text, std::size_t offset);

}  // namespace sextant::config
