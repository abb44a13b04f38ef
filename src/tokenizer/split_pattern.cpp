// Matching by backtracking over a graph without cycles.
//
// Problem: cut text by patterns such as  ?\p{L}+|\s+(?!\S)|\s+ , exactly as the engine that a tokenizer was
// trained with, in time linear in the text, also for a megabyte of one letter. RE2 has no look-ahead;
// PCRE2 10.42 knows Unicode 14, and recursion or match limits stop it on long runs.
//
// Idea: in these patterns only single characters repeat without bound. So a repetition is one step, a run,
// that counts forward and gives back one character at a time, without memory; everything else is a graph of
// steps without cycles, and recursion is never deeper than the pattern is long.
//
// Cost: a run of n characters is scanned once forward and at most once backward for each step that follows
// it. The published patterns end every run in an alternative that takes it whole, so cutting is linear
// (docs/design/tokenizer.md).
#include "tokenizer/split_pattern.h"

#include <algorithm>

#include "tokenizer/split_pattern_parser.h"

namespace sextant::tokenizer {

CharacterSet::CharacterSet(std::vector<Item> items, bool negated)
    : items_(std::move(items)), negated_(negated) {
  for (char32_t code = 0; code < 128; ++code) {
    if (has_beyond_ascii(code)) ascii_[code / 64] |= std::uint64_t{1} << (code % 64);
  }
}

bool CharacterSet::has_beyond_ascii(char32_t code) const {
  const bool found = std::any_of(items_.begin(), items_.end(), [code](const Item& item) {
    bool inside = false;
    switch (item.kind) {
      case Item::Kind::kRange:
        inside = code >= item.first && code <= item.last;
        break;
      case Item::Kind::kCategories:
        inside = is_in(item.categories, code);
        break;
      case Item::Kind::kWhiteSpace:
        inside = is_white_space(code);
        break;
      case Item::Kind::kWord:
        inside = is_word(code);
        break;
    }
    return inside != item.negated;
  });
  return found != negated_;
}

SplitPattern::SplitPattern(std::string_view pattern, const base::SourcePosition& where,
                           const std::string& key_path) {
  first_ = parse_split_pattern(pattern, where, key_path, sets_, steps_);
}

std::size_t SplitPattern::match_run(const Step& step, std::string_view text, std::size_t at) const {
  const CharacterSet& set = sets_[step.set];
  std::uint32_t taken = 0;
  std::size_t end = at;
  while (taken < step.most && end < text.size()) {
    const Character character = character_at(text, end);
    if (!set.has(character.code)) break;
    end += character.bytes;
    ++taken;
  }
  if (taken < step.least) return kNone;
  if (step.possessive) return match(step.next, text, end);
  for (;;) {
    const std::size_t matched = match(step.next, text, end);
    if (matched != kNone || taken == step.least) return matched;
    end -= character_before(text, end).bytes;
    --taken;
  }
}

std::size_t SplitPattern::match(std::uint32_t index, std::string_view text, std::size_t at) const {
  const Step& step = steps_[index];
  switch (step.kind) {
    case Step::Kind::kEnd:
      return at;
    case Step::Kind::kRun:
      return match_run(step, text, at);
    case Step::Kind::kEither:
      for (const std::uint32_t way : step.ways) {
        const std::size_t matched = match(way, text, at);
        if (matched != kNone) return matched;
      }
      return kNone;
    case Step::Kind::kAhead:
    case Step::Kind::kNotAhead: {
      const bool found = match(step.ways.front(), text, at) != kNone;
      return found == (step.kind == Step::Kind::kAhead) ? match(step.next, text, at) : kNone;
    }
  }
  return kNone;
}

std::optional<std::pair<std::size_t, std::size_t>> SplitPattern::find(std::string_view text,
                                                                      std::size_t from) const {
  for (std::size_t at = from; at < text.size(); at += character_at(text, at).bytes) {
    const std::size_t end = match(first_, text, at);
    if (end != kNone && end > at) return std::pair(at, end);
  }
  return std::nullopt;
}

}  // namespace sextant::tokenizer
