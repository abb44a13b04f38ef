// The alphabet of byte-level BPE: each of the 256 bytes as one printable character.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sextant::tokenizer {

/// The character for a byte, as UTF-8 (bytes_to_unicode of GPT-2's encoder.py: printable Latin-1 bytes are
/// themselves, the 68 others are U+0100, U+0101, … in order).
const std::string& character_of_byte(std::uint8_t byte);

/// The bytes that a token's characters stand for, or nothing when one of them is outside the alphabet.
std::optional<std::string> bytes_of_characters(std::string_view token);

}  // namespace sextant::tokenizer
