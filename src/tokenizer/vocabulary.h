// Tokens by id and ids by token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sextant::tokenizer {

using TokenId = std::int32_t;

/// The tokens of a model as its file spells them. Ids need not be dense.
class Vocabulary {
 public:
  /// False when the token or its id is taken.
  bool add(std::string token, TokenId id);
  std::optional<TokenId> find(std::string_view token) const;
  /// Null for an id that no token has.
  const std::string* token_of(TokenId id) const;
  std::size_t size() const { return ids_.size(); }
  /// One more than the highest id.
  TokenId end_id() const { return static_cast<TokenId>(tokens_.size()); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, TokenId, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> tokens_;  ///< keys of ids_
};

/// Ids above this are refused: they would only fill memory.
inline constexpr TokenId kHighestTokenId = 16'777'215;

}  // namespace sextant::tokenizer
