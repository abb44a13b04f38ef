#include "tokenizer/vocabulary.h"

#include "base/check.h"

namespace sextant::tokenizer {

bool Vocabulary::add(std::string token, TokenId id) {
  SEXTANT_CHECK_LE(id, kHighestTokenId);
  const auto at = static_cast<std::size_t>(id);
  if (at < tokens_.size() && tokens_[at] != nullptr) return false;
  const auto [entry, is_new] = ids_.try_emplace(std::move(token), id);
  if (!is_new) return false;
  if (at >= tokens_.size()) tokens_.resize(at + 1, nullptr);
  tokens_[at] = &entry->first;
  return true;
}

std::optional<TokenId> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string* Vocabulary::token_of(TokenId id) const {
  return id >= 0 && id < end_id() ? tokens_[static_cast<std::size_t>(id)] : nullptr;
}

}  // namespace sextant::tokenizer
