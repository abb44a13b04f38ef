// Characters: UTF-8, and what kind of character a code point is (Unicode 16.0).
//
// Why tables of our own: the tokenizers of published models were trained and are run with regular expressions
// over Unicode 16 classes; the libraries of Debian 12 know 14 (PCRE2 10.42) or 15 (ICU 72, utf8proc 2.8), and
// cut text with newer letters elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sextant::tokenizer {

/// General categories, grouped by their first letter so that a group is a range.
// clang-format off
enum class Category : std::uint8_t {
  kCn, kLu, kLl, kLt, kLm, kLo, kMn, kMc, kMe, kNd, kNl, kNo, kPc, kPd, kPs, kPe,
  kPi, kPf, kPo, kSm, kSc, kSk, kSo, kZs, kZl, kZp, kCc, kCf, kCs, kCo,
};
// clang-format on

Category category_of(char32_t code);
/// A set of categories as bits: 1 << category.
using CategorySet = std::uint32_t;
constexpr CategorySet bit_of(Category category) { return CategorySet{1} << static_cast<unsigned>(category); }
constexpr CategorySet bits_of(Category first, Category last) { return (bit_of(last) << 1U) - bit_of(first); }
inline constexpr CategorySet kLetters = bits_of(Category::kLu, Category::kLo);
inline constexpr CategorySet kMarks = bits_of(Category::kMn, Category::kMe);
inline constexpr CategorySet kNumbers = bits_of(Category::kNd, Category::kNo);
inline constexpr CategorySet kPunctuation = bits_of(Category::kPc, Category::kPo);
inline constexpr CategorySet kSymbols = bits_of(Category::kSm, Category::kSo);
inline bool is_in(CategorySet set, char32_t code) { return (set & bit_of(category_of(code))) != 0; }

/// The 25 characters of White_Space.
bool is_white_space(char32_t code);
/// \w of Unicode regular expressions (UTS 18): letters and other alphabetic characters, marks, decimal
/// digits, connectors, joiners. The other alphabetic ones that are neither letter nor mark are circled and
/// squared Latin.
bool is_word(char32_t code);

/// Full case mappings without context: one to three code points. Empty: the character itself.
std::span<const std::uint32_t> lower_case_of(char32_t code);
std::span<const std::uint32_t> upper_case_of(char32_t code);
std::span<const std::uint32_t> title_case_of(char32_t code);

/// One character of valid UTF-8 at `at`, and how many bytes it has.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;
};
Character character_at(std::string_view text, std::size_t at);
/// The character that ends before `end`, which is not 0.
Character character_before(std::string_view text, std::size_t end);
void append_utf8(std::string& text, char32_t code);
std::string to_utf8(char32_t code);
std::u32string to_code_points(std::string_view text);
std::string to_utf8(std::u32string_view codes);

/// How the bytes at `at` read as UTF-8: `bytes` of them are a whole character (valid), or a maximal invalid
/// part that becomes one U+FFFD (Unicode 16.0, section 3.9, "Substitution of Maximal Subparts"), or the end
/// of the text cuts a sequence that further bytes could complete (incomplete).
struct Sequence {
  enum class Kind { kValid, kInvalid, kIncomplete } kind = Kind::kValid;
  std::size_t bytes = 0;
};
Sequence sequence_at(std::string_view text, std::size_t at);

bool is_valid_utf8(std::string_view text);
/// Each maximal invalid part replaced by U+FFFD, as Python's bytes.decode("utf-8", "replace").
std::string replace_invalid_utf8(std::string_view bytes);

}  // namespace sextant::tokenizer
