#include "tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <utility>

namespace sextant::tokenizer {
namespace {

using Piece = Pieces::Piece;

struct Part {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool matched = false;
};

/// The text as matches and what lies between them.
std::vector<Part> parts_of(const Split& split, std::string_view text) {
  std::vector<Part> parts;
  std::size_t reached = 0;
  while (const auto match = next_match(split.pattern, text, reached)) {
    if (match->first > reached) parts.push_back({reached, match->first, split.invert});
    parts.push_back({match->first, match->second, !split.invert});
    reached = match->second;
  }
  if (reached < text.size()) parts.push_back({reached, text.size(), split.invert});
  return parts;
}

/// Joins neighbours by the behaviour; the rules are those of SplitDelimiterBehavior in the library
/// `tokenizers`.
std::vector<Part> joined(std::vector<Part> parts, Split::Behaviour behaviour) {
  using Behaviour = Split::Behaviour;
  if (behaviour == Behaviour::kIsolated) return parts;
  if (behaviour == Behaviour::kRemoved) {
    std::erase_if(parts, [](const Part& part) { return part.matched; });
    return parts;
  }
  if (behaviour == Behaviour::kMergedWithNext) std::reverse(parts.begin(), parts.end());
  std::vector<Part> out;
  bool matched_before = false;
  for (const Part& part : parts) {
    const bool join = behaviour == Behaviour::kContiguous ? part.matched == matched_before
                                                          : part.matched && !matched_before;
    if (join && !out.empty()) {
      out.back().begin = std::min(out.back().begin, part.begin);
      out.back().end = std::max(out.back().end, part.end);
    } else {
      out.push_back(part);
    }
    matched_before = part.matched;
  }
  if (behaviour == Behaviour::kMergedWithNext) std::reverse(out.begin(), out.end());
  return out;
}

void apply(const Split& split, const Piece& piece, Pieces& out) {
  for (const Part& part : joined(parts_of(split, piece.text), split.behaviour)) {
    out.pieces.push_back(
        {piece.text.substr(part.begin, part.end - part.begin), piece.at_start && part.begin == 0});
  }
}

void apply(const PrefixSpace&, const Piece& piece, Pieces& out) {
  if (piece.text.starts_with(' ')) {
    out.pieces.push_back(piece);
  } else {
    out.pieces.push_back({out.rewritten.emplace_back(" ").append(piece.text), piece.at_start});
  }
}

void apply(const Metaspace& metaspace, const Piece& piece, Pieces& out) {
  std::string text;
  for (const char c : piece.text) c == ' ' ? text += metaspace.replacement : text += c;
  const bool prepend = metaspace.scheme == Metaspace::Scheme::kAlways ||
                       (metaspace.scheme == Metaspace::Scheme::kFirst && piece.at_start);
  if (prepend && !text.starts_with(metaspace.replacement)) text.insert(0, metaspace.replacement);
  const Piece whole = {out.rewritten.emplace_back(std::move(text)), piece.at_start};
  if (metaspace.split) {
    apply(Split{metaspace.replacement, Split::Behaviour::kMergedWithNext, false}, whole, out);
  } else {
    out.pieces.push_back(whole);
  }
}

}  // namespace

void pre_tokenize(Pieces& pieces, const std::vector<PreTokenizerStep>& steps) {
  for (const PreTokenizerStep& step : steps) {
    const std::vector<Piece> before = std::exchange(pieces.pieces, {});
    for (const Piece& piece : before) {
      if (!piece.text.empty()) std::visit([&](const auto& what) { apply(what, piece, pieces); }, step);
    }
  }
}

}  // namespace sextant::tokenizer
