// Normalisation: decompose every character fully, put marks into canonical order, and for the C forms join
// pairs again.
//
// Idea and names follow Unicode 16.0, section 3.11 to 3.12; Hangul syllables are computed (section 3.12),
// everything else comes from the table. Cost: linear, but for the ordering of a run of marks (n log n of the
// run). Text of only ASCII is returned as it is.
#include "tokenizer/normal_form.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "tokenizer/unicode.h"
#include "tokenizer/unicode_tables.h"

namespace sextant::tokenizer {
namespace {

// Unicode 16.0, section 3.12.
constexpr char32_t kSyllables = 0xac00;
constexpr char32_t kLeads = 0x1100;
constexpr char32_t kVowels = 0x1161;
constexpr char32_t kTails = 0x11a7;
constexpr char32_t kLeadCount = 19;
constexpr char32_t kVowelCount = 21;
constexpr char32_t kTailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;

struct Mapping {
  std::span<const std::uint32_t> codes;
  bool compatibility = false;
};

struct Data {
  std::unordered_map<char32_t, Mapping> decompositions;
  std::unordered_map<std::uint64_t, char32_t> compositions;  ///< first << 32 | second
  std::unordered_map<char32_t, std::uint8_t> combining_classes;
};

constexpr std::uint64_t pair_key(char32_t first, char32_t second) {
  return std::uint64_t{first} << 32U | second;
}

Data read_data() {
  Data data;
  const auto words = tables::kDecompositions;
  for (std::size_t at = 0; at < words.size();) {
    const std::uint32_t head = words[at];
    const auto codes = words.subspan(at + 1, head >> 21U & 0x1ffU);
    const char32_t code = head & 0x1fffffU;
    data.decompositions.emplace(code, Mapping{codes, (head >> 31U) != 0});
    if ((head >> 30U & 1U) != 0) data.compositions.emplace(pair_key(codes[0], codes[1]), code);
    at += 1 + codes.size();
  }
  const auto runs = tables::kCombiningClasses;
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    if ((runs[i] & 0xffU) == 0) continue;
    for (char32_t code = runs[i] >> 8U; code < runs[i + 1] >> 8U; ++code) {
      data.combining_classes.emplace(code, static_cast<std::uint8_t>(runs[i] & 0xffU));
    }
  }
  return data;
}

const Data& data() {
  static const Data read = read_data();
  return read;
}

struct Ordered {
  char32_t code = 0;
  std::uint8_t combining_class = 0;
};

std::uint8_t combining_class_of(char32_t code) {
  if (code < 0x300) return 0;
  const auto found = data().combining_classes.find(code);
  return found == data().combining_classes.end() ? std::uint8_t{0} : found->second;
}

void decompose(char32_t code, bool compatibility, std::vector<Ordered>& out) {
  if (code >= kSyllables && code < kSyllables + kSyllableCount) {
    const char32_t index = code - kSyllables;
    out.push_back({kLeads + index / (kVowelCount * kTailCount), 0});
    out.push_back({kVowels + index % (kVowelCount * kTailCount) / kTailCount, 0});
    if (index % kTailCount != 0) out.push_back({kTails + index % kTailCount, 0});
    return;
  }
  if (code >= 0xa0) {
    const auto found = data().decompositions.find(code);
    if (found != data().decompositions.end() && (compatibility || !found->second.compatibility)) {
      for (const std::uint32_t part : found->second.codes) decompose(part, compatibility, out);
      return;
    }
  }
  out.push_back({code, combining_class_of(code)});
}

void order_marks(std::vector<Ordered>& codes) {
  for (auto at = codes.begin(); at != codes.end();) {
    if (at->combining_class == 0) {
      ++at;
      continue;
    }
    const auto end =
        std::find_if(at, codes.end(), [](const Ordered& code) { return code.combining_class == 0; });
    std::stable_sort(
        at, end, [](const Ordered& a, const Ordered& b) { return a.combining_class < b.combining_class; });
    at = end;
  }
}

/// The character that joins both, or 0.
char32_t composed(char32_t first, char32_t second) {
  if (first >= kLeads && first < kLeads + kLeadCount && second >= kVowels && second < kVowels + kVowelCount) {
    return kSyllables + ((first - kLeads) * kVowelCount + (second - kVowels)) * kTailCount;
  }
  if (first >= kSyllables && first < kSyllables + kSyllableCount && (first - kSyllables) % kTailCount == 0 &&
      second > kTails && second < kTails + kTailCount) {
    return first + (second - kTails);
  }
  const auto found = data().compositions.find(pair_key(first, second));
  return found == data().compositions.end() ? 0 : found->second;
}

/// Joins each starter with the marks after it that nothing blocks.
void compose(std::vector<Ordered>& codes) {
  std::size_t kept = 0;
  std::ptrdiff_t starter = -1;
  int last_class = -1;  ///< of what was kept since the starter; -1: nothing
  for (const Ordered& next : codes) {
    const bool blocked = last_class >= next.combining_class && last_class != -1;
    const char32_t joined =
        starter >= 0 && !blocked ? composed(codes[static_cast<std::size_t>(starter)].code, next.code) : 0;
    if (joined != 0) {
      codes[static_cast<std::size_t>(starter)].code = joined;
      continue;
    }
    if (next.combining_class == 0) {
      starter = static_cast<std::ptrdiff_t>(kept);
      last_class = -1;
    } else {
      last_class = next.combining_class;
    }
    codes[kept++] = next;
  }
  codes.resize(kept);
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

std::string to_normal_form(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  const bool compatibility = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  std::vector<Ordered> codes;
  codes.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    decompose(character.code, compatibility, codes);
    at += character.bytes;
  }
  order_marks(codes);
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) compose(codes);
  std::string out;
  out.reserve(text.size());
  for (const Ordered& code : codes) append_utf8(out, code.code);
  return out;
}

std::string to_lower_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    at += character.bytes;
    if (character.code < 0x80) {
      out += character.code >= 'A' && character.code <= 'Z' ? static_cast<char>(character.code + 32)
                                                            : static_cast<char>(character.code);
      continue;
    }
    const auto mapped = lower_case_of(character.code);
    if (mapped.empty()) append_utf8(out, character.code);
    for (const std::uint32_t code : mapped) append_utf8(out, code);
  }
  return out;
}

}  // namespace sextant::tokenizer
