// Cutting text into the pieces within which merges happen.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tokenizer/pattern_matches.h"

namespace sextant::tokenizer {

/// Cuts at the matches of a pattern.
struct Split {
  enum class Behaviour { kIsolated, kRemoved, kContiguous, kMergedWithPrevious, kMergedWithNext };
  Pattern pattern;
  Behaviour behaviour = Behaviour::kIsolated;
  bool invert = false;  ///< what the pattern does not match counts as its matches
};
/// Spaces become `replacement`, which may be put before the text.
struct Metaspace {
  enum class Scheme { kAlways, kFirst, kNever };
  std::string replacement;
  Scheme scheme = Scheme::kAlways;
  bool split = true;  ///< a piece begins at each replacement
};
/// Puts a space before text that begins with none. (What else the ByteLevel pre-tokenizer does is a Split and
/// the alphabet of Bpe.)
struct PrefixSpace {};
using PreTokenizerStep = std::variant<Split, Metaspace, PrefixSpace>;

/// Pieces of a text. Those that a step has rewritten live in `rewritten`, the others in the text.
struct Pieces {
  struct Piece {
    std::string_view text;
    bool at_start = false;  ///< begins where the whole input begins
  };
  std::vector<Piece> pieces;
  std::deque<std::string> rewritten;
};

/// All steps in order, each on every piece of the one before. Empty pieces are dropped.
void pre_tokenize(Pieces& pieces, const std::vector<PreTokenizerStep>& steps);

}  // namespace sextant::tokenizer
