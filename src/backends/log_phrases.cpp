// A log of hundreds of megabytes is searched for about a hundred phrases. Searching for each in turn costs a
// hundred passes, and regular expressions can take exponential time on hostile lines. The automaton of
// A. V. Aho and M. J. Corasick ("Efficient string matching: an aid to bibliographic search", CACM 18(6),
// 1975) takes one step for each byte: a trie of the phrases whose missing edges are filled in beforehand with
// where the longest suffix that is still a prefix of some phrase would go.
//
// The table has one column for each byte that occurs in a phrase, not 256, which keeps it in the cache.

#include "backends/log_phrases.h"

#include "base/check.h"

namespace sextant::backends {
namespace {

unsigned char folded(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 'A' && byte <= 'Z' ? static_cast<unsigned char>(byte - 'A' + 'a') : byte;
}

}  // namespace

PhraseFinder::PhraseFinder(std::span<const std::string_view> phrases) {
  for (const std::string_view phrase : phrases) {
    SEXTANT_CHECK(!phrase.empty());
    for (const char c : phrase) {
      if (letter_[folded(c)] == 0) letter_[folded(c)] = static_cast<std::uint8_t>(letters_++);
    }
  }
  SEXTANT_CHECK_LE(letters_, std::size_t{256});
  for (int c = 'A'; c <= 'Z'; ++c) {
    letter_[static_cast<std::size_t>(c)] = letter_[folded(static_cast<char>(c))];
  }
  next_.assign(letters_, -1);
  ending_.assign(1, -1);
  for (std::size_t i = 0; i < phrases.size(); ++i) insert(phrases[i], static_cast<std::uint32_t>(i));
  link();
}

void PhraseFinder::insert(std::string_view phrase, std::uint32_t index) {
  std::size_t node = 0;
  for (const char c : phrase) {
    const std::size_t edge = node * letters_ + letter_[folded(c)];
    if (next_[edge] < 0) {
      next_[edge] = static_cast<std::int32_t>(ending_.size());
      next_.resize(next_.size() + letters_, -1);
      ending_.push_back(-1);
    }
    node = static_cast<std::size_t>(next_[edge]);
  }
  endings_.push_back({index, static_cast<std::uint32_t>(phrase.size()), ending_[node]});
  ending_[node] = static_cast<std::int32_t>(endings_.size() - 1);
}

void PhraseFinder::link() {
  // Breadth first, so that the suffix of a node is complete before the node itself.
  std::vector<std::size_t> queue{0};
  std::vector<std::size_t> suffix(ending_.size(), 0);
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const std::size_t node = queue[head];
    for (std::size_t letter = 0; letter < letters_; ++letter) {
      std::int32_t& edge = next_[node * letters_ + letter];
      const std::int32_t fallback = node == 0 ? 0 : next_[suffix[node] * letters_ + letter];
      if (edge < 0) {
        edge = fallback;
        continue;
      }
      const auto child = static_cast<std::size_t>(edge);
      suffix[child] = static_cast<std::size_t>(fallback);
      queue.push_back(child);
      // Everything that ends at the suffix ends here too.
      if (ending_[child] < 0) {
        ending_[child] = ending_[suffix[child]];
      } else {
        std::int32_t last = ending_[child];
        while (endings_[static_cast<std::size_t>(last)].next >= 0) {
          last = endings_[static_cast<std::size_t>(last)].next;
        }
        endings_[static_cast<std::size_t>(last)].next = ending_[suffix[child]];
      }
    }
  }
}

void PhraseFinder::find(std::string_view text, const Sink& sink) const {
  std::size_t node = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    node = static_cast<std::size_t>(next_[node * letters_ + letter_[static_cast<unsigned char>(text[at])]]);
    for (std::int32_t i = ending_[node]; i >= 0; i = endings_[static_cast<std::size_t>(i)].next) {
      const Ending& ending = endings_[static_cast<std::size_t>(i)];
      sink(ending.phrase, at + 1 - ending.length);
    }
  }
}

}  // namespace sextant::backends
