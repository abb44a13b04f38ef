// Byte-pair encoding: a piece of text to tokens by merging pairs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace sextant::tokenizer {

/// What a merge makes, and when: lower ranks first.
struct Merge {
  std::uint32_t rank = 0;
  TokenId made = 0;
};

/// Pairs of tokens that merge, in one flat table.
class MergeTable {
 public:
  explicit MergeTable(std::size_t pairs = 0);
  /// A pair that is there already takes the new merge.
  void set(TokenId left, TokenId right, Merge merge);
  const Merge* find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    std::uint64_t key = ~std::uint64_t{0};
    Merge merge;
  };
  std::size_t slot_of(std::uint64_t key) const;
  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

struct BpeOptions {
  bool byte_level = false;  ///< a piece's bytes are its units; else its characters
  bool byte_fallback =
      false;  ///< characters that are no token become the tokens <0x00> to <0xFF> of their bytes
  bool ignore_merges = false;  ///< a piece that is a token is taken whole
  bool fuse_unknown = false;   ///< neighbouring unknown characters become one unknown token
  std::optional<TokenId> unknown;
};

/// Encodes pieces as the library `tokenizers` does (its models/bpe). Safe to use from several threads.
class Bpe {
 public:
  /// `vocabulary` must outlive it.
  Bpe(const Vocabulary& vocabulary, MergeTable merges, BpeOptions options);

  /// Appends the tokens of one pre-token (valid UTF-8). Units that are no token, without fallback and without
  /// an unknown token, vanish. O(n log n) in its length.
  void encode(std::string_view piece, std::vector<TokenId>& ids) const;

 private:
  void append_units(std::string_view piece, std::vector<TokenId>& units) const;
  bool append_fallback(std::string_view character, std::vector<TokenId>& units) const;
  void merge(std::vector<TokenId>& units, std::vector<TokenId>& ids) const;

  const Vocabulary* vocabulary_;
  MergeTable merges_;
  BpeOptions options_;
  std::array<std::optional<TokenId>, 256> byte_tokens_;  ///< byte level: of the byte; else of <0xNN>
};

}  // namespace sextant::tokenizer
