#include "tokenizer/tokenizer.h"

#include <algorithm>

#include "tokenizer/byte_characters.h"
#include "tokenizer/unicode.h"

namespace sextant::tokenizer {
namespace {

AddedTokenFinder finder_of(const TokenizerParts& parts, bool normalized) {
  std::vector<const AddedToken*> tokens;
  std::vector<std::string> spellings;
  for (const AddedToken& token : parts.added) {
    if (token.normalized != normalized) continue;
    tokens.push_back(&token);
    spellings.push_back(normalized ? normalise(token.content, parts.normalizer) : token.content);
  }
  return {tokens, spellings};
}

/// The parts of `ranges` inside [begin, end), counted from `begin`.
std::vector<ByteRange> ranges_within(std::span<const ByteRange> ranges, std::size_t begin, std::size_t end) {
  std::vector<ByteRange> inside;
  for (const ByteRange& range : ranges) {
    const ByteRange cut = {std::max(range.begin, begin), std::min(range.end, end)};
    if (cut.begin < cut.end) inside.push_back({cut.begin - begin, cut.end - begin});
  }
  return inside;
}

}  // namespace

Tokenizer::Tokenizer(TokenizerParts parts)
    : parts_(std::move(parts)),
      bpe_(*parts_.vocabulary, std::move(parts_.merges), parts_.bpe),
      bytes_(*parts_.vocabulary, parts_.added, parts_.decode),
      in_raw_text_(finder_of(parts_, false)),
      in_normalised_text_(finder_of(parts_, true)),
      end_id_(parts_.vocabulary->end_id()) {
  for (const AddedToken& token : parts_.added) {
    end_id_ = std::max(end_id_, token.id + 1);
    // The library decodes an added token as it is found in text (and does not know it as special when that
    // differs from its content), and its byte-level decoder takes characters of the byte alphabet for bytes
    // there too.
    std::string text = token.normalized ? normalise(token.content, parts_.normalizer) : token.content;
    const bool never_skipped = text != token.content;
    if (parts_.decode.byte_level) text = bytes_of_characters(text).value_or(text);
    if (text != token.content) decoded_added_.push_back({token.id, std::move(text), never_skipped});
  }
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::string repaired;
  ByteRange whole;
  std::span<const ByteRange> user_text = options.user_text;
  if (!is_valid_utf8(text)) {
    repaired = replace_invalid_utf8(text);
    text = repaired;
    whole = {0, text.size()};
    if (!user_text.empty()) user_text = {&whole, 1};
  }
  std::vector<TokenId> ids;
  if (options.add_special_tokens) ids = parts_.before;
  for (const Stretch& stretch : in_raw_text_.find(text, options.match, user_text)) {
    if (stretch.token != nullptr) {
      ids.push_back(stretch.token->id);
    } else {
      const auto [begin, end] = stretch.range;
      encode_between(text.substr(begin, end - begin), begin == 0, options,
                     ranges_within(user_text, begin, end), ids);
    }
  }
  if (options.add_special_tokens) ids.insert(ids.end(), parts_.after.begin(), parts_.after.end());
  return ids;
}

void Tokenizer::encode_between(std::string_view text, bool at_start, const EncodeOptions& options,
                               std::span<const ByteRange> user_text, std::vector<TokenId>& ids) const {
  std::vector<ByteRange> user_text_after;
  const std::string ready = normalised(text, user_text, user_text_after);
  for (const Stretch& stretch : in_normalised_text_.find(ready, options.match, user_text_after)) {
    if (stretch.token != nullptr) {
      ids.push_back(stretch.token->id);
    } else {
      const auto [begin, end] = stretch.range;
      encode_plain(std::string_view(ready).substr(begin, end - begin), at_start && begin == 0, ids);
    }
  }
}

// Where the users' text lies afterwards is known when the parts normalise alone as they do together; where
// they do not (a mark of the user joins a letter of the template), all of it counts as the users'.
std::string Tokenizer::normalised(std::string_view text, std::span<const ByteRange> user_text,
                                  std::vector<ByteRange>& user_text_after) const {
  std::string whole = normalise(std::string(text), parts_.normalizer);
  if (user_text.empty()) return whole;
  std::string joined;
  std::size_t reached = 0;
  const auto append = [&](std::size_t end) {
    joined += normalise(std::string(text.substr(reached, end - reached)), parts_.normalizer);
    reached = end;
  };
  for (const ByteRange& range : user_text) {
    append(range.begin);
    const std::size_t begin = joined.size();
    append(range.end);
    user_text_after.push_back({begin, joined.size()});
  }
  append(text.size());
  if (joined != whole) user_text_after = {{0, whole.size()}};
  return whole;
}

void Tokenizer::encode_plain(std::string_view text, bool at_start, std::vector<TokenId>& ids) const {
  Pieces pieces;
  pieces.pieces.push_back({text, at_start});
  pre_tokenize(pieces, parts_.pre_tokenizer);
  for (const Pieces::Piece& piece : pieces.pieces) bpe_.encode(piece.text, ids);
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string bytes;
  bool first = true;
  for (const TokenId id : ids) {
    const auto other = std::find_if(decoded_added_.begin(), decoded_added_.end(),
                                    [id](const DecodedAdded& added) { return added.id == id; });
    const bool differs = other != decoded_added_.end();
    if (skip_special && bytes_.is_special(id) && !(differs && other->never_skipped)) continue;
    bytes += differs ? std::string_view(other->text) : bytes_.of(id, first);
    first = false;
  }
  std::string text = replace_invalid_utf8(bytes);
  std::size_t strip = 0;
  while (strip < parts_.decode.strip_spaces && strip < text.size() && text[strip] == ' ') ++strip;
  return text.substr(strip);
}

std::optional<std::vector<ByteRange>> Tokenizer::ranges_of(std::span<const TokenId> ids,
                                                           std::string_view text) const {
  std::string joined;
  std::vector<ByteRange> ranges;
  for (const TokenId id : ids) {
    const std::size_t begin = joined.size();
    joined += bytes_.of(id, false);
    ranges.push_back({begin, joined.size()});
  }
  if (joined == text) return ranges;
  if (joined.size() != text.size() + 1 || joined[0] != ' ' || joined.compare(1, text.size(), text) != 0) {
    return std::nullopt;
  }
  for (ByteRange& range : ranges) {
    range.begin -= range.begin == 0 ? 0 : 1;
    range.end -= range.end == 0 ? 0 : 1;
  }
  return ranges;
}

std::optional<TokenId> Tokenizer::find(std::string_view content) const {
  for (const AddedToken& token : parts_.added) {
    if (token.content == content) return token.id;
  }
  return parts_.vocabulary->find(content);
}

}  // namespace sextant::tokenizer
