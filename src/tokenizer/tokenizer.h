// A tokenizer in Hugging Face form: text to tokens and back, exactly as the library `tokenizers` does it.
//
// A text goes through: added tokens found in the raw text; normalisation of what lies between; added tokens
// that are found in normalised text; cutting into pieces; byte-pair encoding of each piece; the
// post-processor's tokens around.
//
// Everything is immutable after loading: one tokenizer serves any number of threads.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/decoder.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace sextant::tokenizer {

/// What a tokenizer is made of; tokenizer_json.h reads it from a file.
struct TokenizerParts {
  std::unique_ptr<Vocabulary> vocabulary = std::make_unique<Vocabulary>();
  MergeTable merges;
  BpeOptions bpe;
  std::vector<AddedToken> added;  ///< by id, each id and content once
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
  std::vector<TokenId> before;  ///< the post-processor's tokens before the text
  std::vector<TokenId> after;
  DecodeRule decode;
  std::vector<std::string> notes;
};

struct EncodeOptions {
  bool add_special_tokens = false;  ///< those of the post-processor, such as a begin-of-text token
  Match match = Match::kAll;
  /// Bytes of the text that users wrote, sorted and disjoint: no added token is found that touches one of
  /// them. Thus a rendered chat is encoded in one go, the template's own control tokens included, and users'
  /// text stays text.
  std::span<const ByteRange> user_text;
};

class Tokenizer {
 public:
  explicit Tokenizer(TokenizerParts parts);

  /// Bytes that are not valid UTF-8 are read as U+FFFD (and then all of the text counts as users' text if
  /// some does).
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// The text of the tokens; ids that are no token are ignored.
  std::string decode(std::span<const TokenId> ids, bool skip_special) const;

  /// For streams: StreamDecoder(tokenizer.token_bytes(), skip_special).
  const TokenBytes& token_bytes() const { return bytes_; }

  /// The bytes of `text` that each token stands for; nothing unless the tokens' bytes joined are exactly the
  /// text, perhaps with one space before it.
  std::optional<std::vector<ByteRange>> ranges_of(std::span<const TokenId> ids, std::string_view text) const;

  /// An id by its content, among the vocabulary and the added tokens.
  std::optional<TokenId> find(std::string_view content) const;
  /// One more than the highest id: a model may have more rows than that, which are padding.
  TokenId end_id() const { return end_id_; }
  std::span<const AddedToken> added_tokens() const { return parts_.added; }
  /// What a user may want to know about the files, one sentence each.
  std::span<const std::string> notes() const { return parts_.notes; }

 private:
  void encode_between(std::string_view text, bool at_start, const EncodeOptions& options,
                      std::span<const ByteRange> user_text, std::vector<TokenId>& ids) const;
  void encode_plain(std::string_view text, bool at_start, std::vector<TokenId>& ids) const;
  std::string normalised(std::string_view text, std::span<const ByteRange> user_text,
                         std::vector<ByteRange>& user_text_after) const;

  TokenizerParts parts_;
  Bpe bpe_;
  TokenBytes bytes_;
  AddedTokenFinder in_raw_text_;
  AddedTokenFinder in_normalised_text_;
  struct DecodedAdded {
    TokenId id = 0;
    std::string text;
    bool never_skipped = false;
  };
  std::vector<DecodedAdded> decoded_added_;  ///< added tokens that decode writes otherwise than a stream
  TokenId end_id_ = 0;
};

}  // namespace sextant::tokenizer
