// Where the Unicode 16.0 data of this room lie: flat arrays, written by scripts/make_unicode_tables.py.
// Read them through unicode.h and normal_form.h.
#pragma once

#include <cstdint>
#include <span>

namespace sextant::tokenizer::tables {

/// code point << 8 | value, wherever the value changes: general category (the order of Category), and
/// canonical combining class.
extern const std::span<const std::uint32_t> kCategories;
extern const std::span<const std::uint32_t> kCombiningClasses;

/// Entries of 1 + n words: code point | n << 21 | composes << 30 | compatibility << 31, then the n code
/// points that it maps to. `composes`: the pair is joined again by NFC.
extern const std::span<const std::uint32_t> kDecompositions;
extern const std::span<const std::uint32_t> kLowerCase;
extern const std::span<const std::uint32_t> kUpperCase;
extern const std::span<const std::uint32_t> kTitleCase;  ///< only where it differs from upper case

}  // namespace sextant::tokenizer::tables
