#include "journal/content_hash.h"

#include <openssl/sha.h>

#include <array>

namespace sextant::journal {
namespace {

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

Digest digest(std::string_view bytes) {
  Digest result{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), result.data());
  return result;
}

}  // namespace

std::string sha256(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest(bytes)) text += {kHex[byte >> 4], kHex[byte & 15]};
  return text;
}

std::uint64_t leading_bytes_of_sha256(std::string_view bytes) {
  const Digest full = digest(bytes);
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = value << 8 | full[i];
  return value;
}

std::string content_hash(std::span<const Input> inputs) {
  std::string text;
  for (const Input& input : inputs) {
    text += input.role + ' ' + std::to_string(input.bytes.size());
    text += '\0';
    text += input.bytes;
  }
  return sha256(text);
}

}  // namespace sextant::journal
