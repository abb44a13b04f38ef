// Merging with a heap.
//
// Problem: among all neighbours, merge the pair of lowest rank, leftmost first, again and again. Trying all
// pairs each time is quadratic, and a server meets pieces of a megabyte (one letter repeated).
//
// Idea: units form a linked list; a heap holds every pair that could merge, by rank and place. The lowest is
// taken and merged, and the two new pairs beside it go onto the heap. Pairs whose units have changed
// meanwhile stay on the heap and are recognised when they come up: what they would make is no longer what
// their place makes.
//
// Cost: at most three heap entries a unit, so O(n log n). Source: the library `tokenizers`,
// models/bpe/word.rs, whose order this must equal.
#include "tokenizer/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "tokenizer/byte_characters.h"
#include "tokenizer/unicode.h"

namespace sextant::tokenizer {
namespace {

constexpr std::uint64_t kFree = ~std::uint64_t{0};

std::uint64_t pair_key(TokenId left, TokenId right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32U | static_cast<std::uint32_t>(right);
}

struct Symbol {
  TokenId id = 0;
  std::int32_t before = -1;
  std::int32_t after = -1;
  bool merged_away = false;
};

struct Candidate {
  std::uint32_t rank = 0;
  std::int32_t place = 0;
  TokenId made = 0;
};

/// For a heap whose top is the lowest rank, leftmost.
bool comes_later(const Candidate& a, const Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.place > b.place;
}

}  // namespace

MergeTable::MergeTable(std::size_t pairs) : slots_(std::bit_ceil(2 * pairs + 8)) {}

std::size_t MergeTable::slot_of(std::uint64_t key) const {
  const std::size_t mask = slots_.size() - 1;
  // Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4); only the high half of
  // the product depends on both tokens.
  const std::uint64_t product = key * 0x9e3779b97f4a7c15U;
  std::size_t slot = static_cast<std::size_t>(product ^ product >> 32U) & mask;
  while (slots_[slot].key != kFree && slots_[slot].key != key) slot = (slot + 1) & mask;
  return slot;
}

void MergeTable::set(TokenId left, TokenId right, Merge merge) {
  if (2 * (used_ + 1) > slots_.size()) {
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
    for (const Slot& slot : old) {
      if (slot.key != kFree) slots_[slot_of(slot.key)] = slot;
    }
  }
  Slot& slot = slots_[slot_of(pair_key(left, right))];
  if (slot.key == kFree) ++used_;
  slot = {pair_key(left, right), merge};
}

const Merge* MergeTable::find(TokenId left, TokenId right) const {
  const Slot& slot = slots_[slot_of(pair_key(left, right))];
  return slot.key == kFree ? nullptr : &slot.merge;
}

Bpe::Bpe(const Vocabulary& vocabulary, MergeTable merges, BpeOptions options)
    : vocabulary_(&vocabulary), merges_(std::move(merges)), options_(options) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    byte_tokens_[byte] =
        vocabulary.find(options.byte_level ? character_of_byte(static_cast<std::uint8_t>(byte))
                                           : fmt::format("<0x{:02X}>", byte));
  }
}

void Bpe::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  if (piece.empty()) return;
  if (options_.ignore_merges) {
    std::string spelled(options_.byte_level ? "" : piece);
    if (options_.byte_level) {
      for (const char byte : piece) spelled += character_of_byte(static_cast<std::uint8_t>(byte));
    }
    if (const auto whole = vocabulary_->find(spelled)) {
      ids.push_back(*whole);
      return;
    }
  }
  std::vector<TokenId> units;
  append_units(piece, units);
  merge(units, ids);
}

bool Bpe::append_fallback(std::string_view character, std::vector<TokenId>& units) const {
  for (const char byte : character) {
    if (!byte_tokens_[static_cast<std::uint8_t>(byte)]) return false;
  }
  for (const char byte : character) units.push_back(*byte_tokens_[static_cast<std::uint8_t>(byte)]);
  return true;
}

// An unknown token waits until the next known character, and tokens of bytes overtake it: so does the
// library.
void Bpe::append_units(std::string_view piece, std::vector<TokenId>& units) const {
  bool unknown_waits = false;
  units.reserve(piece.size());
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t bytes = options_.byte_level ? 1 : character_at(piece, at).bytes;
    const std::string_view character = piece.substr(at, bytes);
    at += bytes;
    const auto token = options_.byte_level ? byte_tokens_[static_cast<std::uint8_t>(character[0])]
                                           : vocabulary_->find(character);
    if (token) {
      if (unknown_waits) units.push_back(*options_.unknown);
      unknown_waits = false;
      units.push_back(*token);
    } else if (!options_.byte_level && options_.byte_fallback && append_fallback(character, units)) {
      continue;
    } else if (options_.unknown) {
      if (unknown_waits && !options_.fuse_unknown) units.push_back(*options_.unknown);
      unknown_waits = true;
    }
  }
  if (unknown_waits) units.push_back(*options_.unknown);
}

void Bpe::merge(std::vector<TokenId>& units, std::vector<TokenId>& ids) const {
  const auto count = static_cast<std::int32_t>(units.size());
  std::vector<Symbol> symbols(units.size());
  const auto symbol = [&symbols](std::int32_t place) -> Symbol& {
    return symbols[static_cast<std::size_t>(place)];
  };
  std::vector<Candidate> heap;
  const auto candidate = [&](std::int32_t place) -> std::optional<Candidate> {
    const Symbol& left = symbol(place);
    if (left.after < 0) return std::nullopt;
    const Merge* const merge = merges_.find(left.id, symbol(left.after).id);
    if (merge == nullptr) return std::nullopt;
    return Candidate{merge->rank, place, merge->made};
  };
  for (std::int32_t i = 0; i < count; ++i)
    symbol(i) = {units[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1, false};
  for (std::int32_t i = 0; i + 1 < count; ++i) {
    if (const auto found = candidate(i)) heap.push_back(*found);
  }
  std::make_heap(heap.begin(), heap.end(), comes_later);
  const auto push = [&](std::int32_t place) {
    if (place < 0) return;
    if (const auto found = candidate(place)) {
      heap.push_back(*found);
      std::push_heap(heap.begin(), heap.end(), comes_later);
    }
  };
  while (!heap.empty()) {
    const Candidate top = heap.front();
    std::pop_heap(heap.begin(), heap.end(), comes_later);
    heap.pop_back();
    Symbol& left = symbol(top.place);
    if (left.merged_away) continue;
    const auto now = candidate(top.place);
    if (!now || now->made != top.made) continue;  // its units have changed
    Symbol& right = symbol(left.after);
    right.merged_away = true;
    left.id = top.made;
    left.after = right.after;
    if (left.after >= 0) symbol(left.after).before = top.place;
    push(left.before);
    push(top.place);
  }
  for (std::int32_t i = count == 0 ? -1 : 0; i >= 0; i = symbol(i).after) ids.push_back(symbol(i).id);
}

}  // namespace sextant::tokenizer
