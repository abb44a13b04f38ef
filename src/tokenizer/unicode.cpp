#include "tokenizer/unicode.h"

#include <array>
#include <unordered_map>
#include <vector>

#include "tokenizer/unicode_tables.h"

namespace sextant::tokenizer {
namespace {

constexpr std::size_t kCodes = 0x110000;
constexpr std::size_t kPage = 256;

/// Two stages: pages of 256 code points, equal pages kept once. Built from the runs on first use.
struct CategoryPages {
  std::array<std::uint16_t, kCodes / kPage> page_of{};
  std::vector<std::array<Category, kPage>> pages;
};

CategoryPages make_pages() {
  std::vector<Category> all(kCodes);
  const auto runs = tables::kCategories;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::size_t last = i + 1 < runs.size() ? runs[i + 1] >> 8U : kCodes;
    for (std::size_t code = runs[i] >> 8U; code < last; ++code)
      all[code] = static_cast<Category>(runs[i] & 0xffU);
  }
  CategoryPages table;
  std::unordered_map<std::string, std::uint16_t> known;
  for (std::size_t page = 0; page < kCodes / kPage; ++page) {
    const char* const first = reinterpret_cast<const char*>(&all[page * kPage]);
    const auto [at, is_new] =
        known.try_emplace(std::string(first, kPage), static_cast<std::uint16_t>(table.pages.size()));
    if (is_new) {
      std::array<Category, kPage>& copy = table.pages.emplace_back();
      for (std::size_t i = 0; i < kPage; ++i) copy[i] = all[page * kPage + i];
    }
    table.page_of[page] = at->second;
  }
  return table;
}

/// Where the mapping of a code point begins in an array of unicode_tables.h.
using Mappings = std::unordered_map<char32_t, std::span<const std::uint32_t>>;

Mappings read_mappings(std::span<const std::uint32_t> words) {
  Mappings mappings;
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t length = words[at] >> 21U & 0x1ffU;
    mappings.emplace(words[at] & 0x1fffffU, words.subspan(at + 1, length));
    at += 1 + length;
  }
  return mappings;
}

std::span<const std::uint32_t> look_up(const Mappings& mappings, char32_t code) {
  const auto found = mappings.find(code);
  return found == mappings.end() ? std::span<const std::uint32_t>() : found->second;
}

}  // namespace

Category category_of(char32_t code) {
  static const CategoryPages table = make_pages();
  if (code >= kCodes) return Category::kCn;
  return table.pages[table.page_of[code / kPage]][code % kPage];
}

bool is_white_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= 9 && code <= 13);
  return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
         code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

bool is_word(char32_t code) {
  constexpr CategorySet kWord =
      kLetters | kMarks | bit_of(Category::kNd) | bit_of(Category::kNl) | bit_of(Category::kPc);
  if (is_in(kWord, code)) return true;
  const bool joiner = code == 0x200c || code == 0x200d;
  const bool circled = (code >= 0x24b6 && code <= 0x24e9) || (code >= 0x1f130 && code <= 0x1f149) ||
                       (code >= 0x1f150 && code <= 0x1f169) || (code >= 0x1f170 && code <= 0x1f189);
  return joiner || circled;
}

std::span<const std::uint32_t> lower_case_of(char32_t code) {
  static const Mappings mappings = read_mappings(tables::kLowerCase);
  return look_up(mappings, code);
}

std::span<const std::uint32_t> upper_case_of(char32_t code) {
  static const Mappings mappings = read_mappings(tables::kUpperCase);
  return look_up(mappings, code);
}

std::span<const std::uint32_t> title_case_of(char32_t code) {
  static const Mappings mappings = read_mappings(tables::kTitleCase);
  const std::span<const std::uint32_t> own = look_up(mappings, code);
  return own.empty() ? upper_case_of(code) : own;
}

Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xe0) return {(first & 0x1fU) << 6U | (byte(1) & 0x3fU), 2};
  if (first < 0xf0) return {(first & 0x0fU) << 12U | (byte(1) & 0x3fU) << 6U | (byte(2) & 0x3fU), 3};
  return {(first & 0x07U) << 18U | (byte(1) & 0x3fU) << 12U | (byte(2) & 0x3fU) << 6U | (byte(3) & 0x3fU), 4};
}

Character character_before(std::string_view text, std::size_t end) {
  std::size_t begin = end - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0U) == 0x80U) --begin;
  return character_at(text, begin);
}

void append_utf8(std::string& text, char32_t code) {
  const auto add = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0U | code >> 6U);
  } else if (code < 0x10000) {
    add(0xe0U | code >> 12U);
    add(0x80U | (code >> 6U & 0x3fU));
  } else {
    add(0xf0U | code >> 18U);
    add(0x80U | (code >> 12U & 0x3fU));
    add(0x80U | (code >> 6U & 0x3fU));
  }
  add(0x80U | (code & 0x3fU));
}

std::string to_utf8(char32_t code) {
  std::string text;
  append_utf8(text, code);
  return text;
}

std::u32string to_code_points(std::string_view text) {
  std::u32string codes;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    codes += character.code;
    at += character.bytes;
  }
  return codes;
}

std::string to_utf8(std::u32string_view codes) {
  std::string text;
  for (const char32_t code : codes) append_utf8(text, code);
  return text;
}

// The table of well-formed sequences: Unicode 16.0, table 3-7. Only the second byte has other bounds than 80
// to BF.
Sequence sequence_at(std::string_view text, std::size_t at) {
  using Kind = Sequence::Kind;
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {Kind::kValid, 1};
  if (first < 0xc2 || first > 0xf4) return {Kind::kInvalid, 1};
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  for (std::size_t i = 1; i < length; ++i) {
    if (at + i == text.size()) return {Kind::kIncomplete, i};
    const auto next = static_cast<unsigned char>(text[at + i]);
    if (next < low || next > high) return {Kind::kInvalid, i};
    low = 0x80;
    high = 0xbf;
  }
  return {Kind::kValid, length};
}

bool is_valid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Sequence sequence = sequence_at(text, at);
    if (sequence.kind != Sequence::Kind::kValid) return false;
    at += sequence.bytes;
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size();) {
    const Sequence sequence = sequence_at(bytes, at);
    if (sequence.kind == Sequence::Kind::kValid) {
      text += bytes.substr(at, sequence.bytes);
    } else {
      text += "\xEF\xBF\xBD";
    }
    at += sequence.bytes;
  }
  return text;
}

}  // namespace sextant::tokenizer
