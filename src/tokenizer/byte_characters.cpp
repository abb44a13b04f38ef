#include "tokenizer/byte_characters.h"

#include <array>

#include "tokenizer/unicode.h"

namespace sextant::tokenizer {
namespace {

constexpr char32_t kFirstStandIn = 0x100;
constexpr char32_t kStandIns = 68;

constexpr bool stands_for_itself(char32_t byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

constexpr std::array<char32_t, 256> make_codes() {
  std::array<char32_t, 256> codes{};
  char32_t next = kFirstStandIn;
  for (char32_t byte = 0; byte < 256; ++byte) codes[byte] = stands_for_itself(byte) ? byte : next++;
  return codes;
}

constexpr std::array<char32_t, 256> kCodes = make_codes();

constexpr std::array<std::uint8_t, kStandIns> make_bytes() {
  std::array<std::uint8_t, kStandIns> bytes{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    if (kCodes[byte] >= kFirstStandIn) bytes[kCodes[byte] - kFirstStandIn] = static_cast<std::uint8_t>(byte);
  }
  return bytes;
}

constexpr std::array<std::uint8_t, kStandIns> kBytes = make_bytes();

}  // namespace

const std::string& character_of_byte(std::uint8_t byte) {
  static const std::array<std::string, 256> characters = [] {
    std::array<std::string, 256> made;
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = to_utf8(kCodes[i]);
    return made;
  }();
  return characters[byte];
}

std::optional<std::string> bytes_of_characters(std::string_view token) {
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const Character character = character_at(token, at);
    at += character.bytes;
    if (character.code < 256 && stands_for_itself(character.code)) {
      bytes += static_cast<char>(character.code);
    } else if (character.code >= kFirstStandIn && character.code < kFirstStandIn + kStandIns) {
      bytes += static_cast<char>(kBytes[character.code - kFirstStandIn]);
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace sextant::tokenizer
