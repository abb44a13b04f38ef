// Tokens that are found in the text before anything else: control tokens and those added after training.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace sextant::tokenizer {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool single_word = false;  ///< only where no letter or digit stands beside it
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< takes the white space after it along
  bool normalized = false;   ///< looked for, by its normalised content, in normalised text
  bool special = false;      ///< a control token: left out by skip_special_tokens
};

/// Which added tokens are looked for in a text: all, those that are not special, none. Text that users wrote
/// is encoded with kNone, so that it never becomes a control token.
enum class Match : std::uint8_t { kAll, kNotSpecial, kNone };

/// Bytes [begin, end) of a text.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A stretch of text: an added token's, or plain (`token` is null).
struct Stretch {
  const AddedToken* token = nullptr;
  ByteRange range;
};

/// Finds added tokens: leftmost, longest first. Safe to use from several threads.
class AddedTokenFinder {
 public:
  /// `spellings[i]` is what `tokens[i]` is found by; empty ones are never found. Keeps pointers to `tokens`.
  AddedTokenFinder(std::span<const AddedToken* const> tokens, std::span<const std::string> spellings);

  bool empty() const { return nodes_.size() == 1; }

  /// Cuts `text` into stretches. Matches that touch a byte of `plain` (sorted, disjoint) do not count. O(n
  /// times the longest token).
  ///
  /// The order of the rules is the library's: a longer match that single_word refuses hides shorter ones at
  /// its place; white space that a token takes along may reach into the next token, which still counts.
  std::vector<Stretch> find(std::string_view text, Match match, std::span<const ByteRange> plain) const;

 private:
  struct Node {
    std::vector<std::pair<unsigned char, std::uint32_t>> children;
    const AddedToken* token = nullptr;
  };
  struct Found {
    const AddedToken* token = nullptr;
    std::size_t end = 0;
  };
  Found longest_at(std::string_view text, std::size_t at, std::size_t limit) const;

  std::vector<Node> nodes_;
  std::array<bool, 256> first_bytes_{};
};

}  // namespace sextant::tokenizer
