// Names for contents.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "journal/records.h"

namespace sextant::journal {

/// SHA-256 as 64 hexadecimal digits.
std::string sha256(std::string_view bytes);

/// The first eight bytes of the SHA-256, the first of them in the lowest place.
std::uint64_t leading_bytes_of_sha256(std::string_view bytes);

/// One name for all inputs of a run: the SHA-256 of, for each input in order, its role, a space, its length
/// in bytes, a zero byte and its bytes (as git names a blob). Paths do not enter: the same contents have the
/// same name elsewhere.
std::string content_hash(std::span<const Input> inputs);

}  // namespace sextant::journal
