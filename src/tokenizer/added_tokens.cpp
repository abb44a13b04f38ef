#include "tokenizer/added_tokens.h"

#include <algorithm>

#include "tokenizer/unicode.h"

namespace sextant::tokenizer {
namespace {

bool is_single_word(std::string_view text, std::size_t begin, std::size_t end) {
  const bool before = begin > 0 && is_word(character_before(text, begin).code);
  const bool after = end < text.size() && is_word(character_at(text, end).code);
  return !before && !after;
}

std::size_t before_white_space(std::string_view text, std::size_t at) {
  while (at > 0) {
    const Character character = character_before(text, at);
    if (!is_white_space(character.code)) break;
    at -= character.bytes;
  }
  return at;
}

std::size_t after_white_space(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const Character character = character_at(text, at);
    if (!is_white_space(character.code)) break;
    at += character.bytes;
  }
  return at;
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::span<const AddedToken* const> tokens,
                                   std::span<const std::string> spellings)
    : nodes_(1) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (spellings[i].empty()) continue;
    first_bytes_[static_cast<unsigned char>(spellings[i][0])] = true;
    std::uint32_t at = 0;
    for (const char c : spellings[i]) {
      const auto byte = static_cast<unsigned char>(c);
      auto& children = nodes_[at].children;
      const auto child = std::find_if(children.begin(), children.end(),
                                      [&](const auto& pair) { return pair.first == byte; });
      if (child != children.end()) {
        at = child->second;
        continue;
      }
      const auto made = static_cast<std::uint32_t>(nodes_.size());
      children.emplace_back(byte, made);
      nodes_.emplace_back();
      at = made;
    }
    if (nodes_[at].token == nullptr) nodes_[at].token = tokens[i];
  }
}

AddedTokenFinder::Found AddedTokenFinder::longest_at(std::string_view text, std::size_t at,
                                                     std::size_t limit) const {
  Found found;
  std::uint32_t node = 0;
  for (std::size_t end = at; end < limit;) {
    const auto byte = static_cast<unsigned char>(text[end]);
    const auto& children = nodes_[node].children;
    const auto child =
        std::find_if(children.begin(), children.end(), [&](const auto& pair) { return pair.first == byte; });
    if (child == children.end()) break;
    node = child->second;
    ++end;
    if (nodes_[node].token != nullptr) found = {nodes_[node].token, end};
  }
  return found;
}

std::vector<Stretch> AddedTokenFinder::find(std::string_view text, Match match,
                                            std::span<const ByteRange> plain) const {
  std::vector<Stretch> stretches;
  if (text.empty()) return stretches;
  std::size_t reached = 0;
  auto next_plain = plain.begin();
  for (std::size_t at = 0; match != Match::kNone && !empty() && at < text.size();) {
    while (next_plain != plain.end() && next_plain->end <= at) ++next_plain;
    if (next_plain != plain.end() && next_plain->begin <= at) {
      at = next_plain->end;
      continue;
    }
    if (!first_bytes_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const std::size_t limit =
        next_plain == plain.end() ? text.size() : std::min(next_plain->begin, text.size());
    const Found found = longest_at(text, at, limit);
    if (found.token == nullptr) {
      ++at;
      continue;
    }
    ByteRange range = {at, found.end};
    at = found.end;
    if (found.token->special && match == Match::kNotSpecial) continue;
    if (found.token->single_word && !is_single_word(text, range.begin, range.end)) continue;
    if (found.token->lstrip) range.begin = std::max(before_white_space(text, range.begin), reached);
    if (found.token->rstrip) range.end = after_white_space(text, range.end);
    if (reached < range.begin) stretches.push_back({nullptr, {reached, range.begin}});
    stretches.push_back({found.token, range});
    reached = range.end;
  }
  if (reached < text.size()) stretches.push_back({nullptr, {reached, text.size()}});
  return stretches;
}

}  // namespace sextant::tokenizer
