#include "tokenizer/decoder.h"

#include <algorithm>
#include <optional>

#include "tokenizer/byte_characters.h"
#include "tokenizer/unicode.h"

namespace sextant::tokenizer {
namespace {

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  if (from.empty()) return;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// The byte that "<0xNN>" names.
std::optional<char> named_byte(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  const int high = digit(token[3]);
  const int low = digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

}  // namespace

TokenBytes::TokenBytes(const Vocabulary& vocabulary, std::span<const AddedToken> added, DecodeRule rule)
    : rule_(std::move(rule)) {
  TokenId end = vocabulary.end_id();
  for (const AddedToken& token : added) end = std::max(end, token.id + 1);
  entries_.resize(static_cast<std::size_t>(end));
  for (TokenId id = 0; id < vocabulary.end_id(); ++id) {
    const std::string* const token = vocabulary.token_of(id);
    if (token == nullptr) continue;
    Entry& entry = entries_[static_cast<std::size_t>(id)];
    bool is_byte = false;
    entry.bytes = bytes_of(*token, is_byte);
    entry.loses_in_first = !is_byte && !rule_.dropped_in_first.empty() &&
                           token->find(rule_.dropped_in_first) != std::string::npos;
  }
  for (const AddedToken& token : added)
    entries_[static_cast<std::size_t>(token.id)] = {token.content, token.special, false};
  for (TokenId id = 0; id < vocabulary.end_id(); ++id) {
    if (!entries_[static_cast<std::size_t>(id)].loses_in_first) continue;
    std::string bytes = *vocabulary.token_of(id);
    replace_all(bytes, rule_.dropped_in_first, "");
    first_bytes_.emplace_back(id, std::move(bytes));
  }
}

std::string TokenBytes::bytes_of(const std::string& token, bool& is_byte) const {
  if (rule_.byte_level) {
    auto bytes = bytes_of_characters(token);
    return bytes ? *std::move(bytes) : token;
  }
  if (rule_.byte_fallback) {
    if (const auto byte = named_byte(token)) {
      is_byte = true;
      return std::string(1, *byte);
    }
  }
  std::string bytes = token;
  for (const auto& [from, to] : rule_.replacements) replace_all(bytes, from, to);
  return bytes;
}

std::string_view TokenBytes::of(TokenId id, bool first) const {
  if (id < 0 || static_cast<std::size_t>(id) >= entries_.size()) return {};
  const Entry& entry = entries_[static_cast<std::size_t>(id)];
  if (!first || !entry.loses_in_first) return entry.bytes;
  const auto at = std::lower_bound(first_bytes_.begin(), first_bytes_.end(), id,
                                   [](const auto& pair, TokenId wanted) { return pair.first < wanted; });
  return at->second;
}

bool TokenBytes::is_special(TokenId id) const {
  return id >= 0 && static_cast<std::size_t>(id) < entries_.size() &&
         entries_[static_cast<std::size_t>(id)].special;
}

std::string StreamDecoder::push(TokenId id) {
  if (skip_special_ && tokens_->is_special(id)) return {};
  held_ += tokens_->of(id, first_);
  first_ = false;
  return take(false);
}

std::string StreamDecoder::flush() { return take(true); }

std::string StreamDecoder::take(bool all) {
  std::string text;
  std::size_t at = 0;
  while (at < held_.size()) {
    const Sequence sequence = sequence_at(held_, at);
    if (sequence.kind == Sequence::Kind::kIncomplete && !all) break;
    if (sequence.kind == Sequence::Kind::kValid) {
      text.append(held_, at, sequence.bytes);
    } else {
      text += "\xEF\xBF\xBD";
    }
    at += sequence.bytes;
  }
  held_.erase(0, at);
  if (!text_begun_ && !text.empty()) {
    while (stripped_ < tokens_->rule().strip_spaces && text.starts_with(' ')) {
      text.erase(0, 1);
      ++stripped_;
    }
    text_begun_ = !text.empty() || stripped_ == tokens_->rule().strip_spaces;
  }
  return text;
}

}  // namespace sextant::tokenizer
