// Tokens back to text, all at once or while they come.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/vocabulary.h"

namespace sextant::tokenizer {

/// How a token of the vocabulary becomes bytes.
struct DecodeRule {
  bool byte_level = false;     ///< characters of the byte alphabet; a token with another one is its UTF-8
  bool byte_fallback = false;  ///< <0xNN> is that byte
  std::vector<std::pair<std::string, std::string>> replacements;  ///< in order, such as "▁" by " "
  std::string
      dropped_in_first;  ///< Metaspace: the first token loses these, unless it is an added or byte token
  std::size_t strip_spaces = 0;  ///< so many spaces at the beginning of the whole text are dropped
};

/// The bytes of every token, worked out once.
class TokenBytes {
 public:
  TokenBytes(const Vocabulary& vocabulary, std::span<const AddedToken> added, DecodeRule rule);

  /// "" for ids that are no token.
  std::string_view of(TokenId id, bool first) const;
  bool is_special(TokenId id) const;
  const DecodeRule& rule() const { return rule_; }

 private:
  struct Entry {
    std::string bytes;
    bool special = false;
    bool loses_in_first = false;
  };
  std::string bytes_of(const std::string& token, bool& is_byte) const;

  std::vector<Entry> entries_;
  std::vector<std::pair<TokenId, std::string>> first_bytes_;  ///< of the entries that lose something, by id
  DecodeRule rule_;
};

/// Text as tokens come. What has been given out never changes: only an incomplete UTF-8 sequence at the end,
/// which further bytes could complete, is held back. The pieces joined equal the decoded whole.
class StreamDecoder {
 public:
  /// `tokens` must outlive it. `skip_special`: special tokens give nothing and are as if absent.
  StreamDecoder(const TokenBytes& tokens, bool skip_special)
      : tokens_(&tokens), skip_special_(skip_special) {}

  /// The text that may be shown after this token, perhaps "".
  std::string push(TokenId id);
  /// What is left at the end; incomplete bytes become U+FFFD.
  std::string flush();

 private:
  std::string take(bool all);

  const TokenBytes* tokens_;
  bool skip_special_;
  bool first_ = true;
  std::size_t stripped_ = 0;
  bool text_begun_ = false;
  std::string held_;
};

}  // namespace sextant::tokenizer
