// The regular expressions by which tokenizers cut text into pre-tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tokenizer/unicode.h"

namespace sextant::tokenizer {

/// A set of characters: the union of its items, negated as a whole or not.
class CharacterSet {
 public:
  struct Item {
    enum class Kind : std::uint8_t { kRange, kCategories, kWhiteSpace, kWord } kind = Kind::kRange;
    bool negated = false;
    char32_t first = 0;
    char32_t last = 0;
    CategorySet categories = 0;
  };

  CharacterSet(std::vector<Item> items, bool negated);
  bool has(char32_t code) const {
    return code < 128 ? (ascii_[code / 64] >> (code % 64) & 1U) != 0 : has_beyond_ascii(code);
  }

 private:
  bool has_beyond_ascii(char32_t code) const;

  std::vector<Item> items_;
  bool negated_;
  std::uint64_t ascii_[2] = {0, 0};
};

/// A compiled pattern. Matching is leftmost, first alternative first, greedy, as in the engine that Hugging
/// Face tokenizers use (Oniguruma), with the character classes of Unicode 16.0. Safe to use from several
/// threads.
///
/// What it knows: alternation, groups (capturing or not, `(?i:`), sets, `.`, \s \S \d \D \w \W, \p{..} of
/// general categories, look-ahead, greedy ? * + {m,n} on single characters (also possessive: `?+`, `*+`,
/// `++`), ? on groups.
class SplitPattern {
 public:
  /// Throws base::UserError at `where` (and `key_path`) for what it does not know, quoting it.
  SplitPattern(std::string_view pattern, const base::SourcePosition& where, const std::string& key_path);

  /// The first non-empty match that begins at or after `from`, as [begin, end), in valid UTF-8.
  std::optional<std::pair<std::size_t, std::size_t>> find(std::string_view text, std::size_t from) const;

  /// One step of the compiled pattern; `next` is where matching goes on. See split_pattern.cpp.
  struct Step {
    enum class Kind : std::uint8_t { kRun, kEither, kAhead, kNotAhead, kEnd } kind = Kind::kEnd;
    std::uint32_t set = 0;            ///< kRun: which set
    std::uint32_t least = 0;          ///< kRun: repetitions
    std::uint32_t most = 0;           ///< kRun
    bool possessive = false;          ///< kRun: gives nothing back
    std::uint32_t next = 0;           ///< kRun, kAhead, kNotAhead
    std::vector<std::uint32_t> ways;  ///< kEither: the alternatives; kAhead, kNotAhead: the one to look for
  };
  static constexpr std::uint32_t kUnbounded = 0xffffffff;

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t match(std::uint32_t step, std::string_view text, std::size_t at) const;
  std::size_t match_run(const Step& step, std::string_view text, std::size_t at) const;

  std::vector<CharacterSet> sets_;
  std::vector<Step> steps_;
  std::uint32_t first_ = 0;
};

}  // namespace sextant::tokenizer
