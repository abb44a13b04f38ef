// Decoding ids and encoding the text again rarely gives the same ids: neighbours merge, and ids that are
// parts of characters become U+FFFD. The reference repeats: too short, add random ids; too long, cut; until
// the length fits, ten times at most. Most vocabularies fit within a few rounds, some texts never.
//
// For these a filler helps: a word w whose every repetition adds exactly one token, whatever stands before
// it. The text is cut until it is at most the length, and filled up. Both ways end in a count by encoding.
#include "load/prompts.h"

#include <array>
#include <optional>
#include <set>

#include "base/check.h"

namespace sextant::load {
namespace {

constexpr int kMostRounds = 10;  // of the reference's client

std::int64_t count(const tokenizer::Tokenizer& tokenizer, const std::string& text) {
  return static_cast<std::int64_t>(tokenizer.encode(text).size());
}

std::string repeated(const std::string& word, std::int64_t times) {
  std::string text;
  for (std::int64_t i = 0; i < times; ++i) text += word;
  return text;
}

class Fitter {
 public:
  Fitter(const tokenizer::Tokenizer& tokenizer, NumpyRandom& random)
      : tokenizer_(tokenizer), vocabulary_(drawn_vocabulary(tokenizer)), random_(random) {}

  std::int64_t vocabulary() const { return vocabulary_; }

  Prompt fit(std::int64_t offset, std::int64_t length) {
    std::vector<TokenId> ids;
    for (std::int64_t j = 0; j < length; ++j) ids.push_back(at(offset + j));
    Prompt prompt{.text = tokenizer_.decode(ids, false)};
    for (int round = 0; round < kMostRounds; ++round) {
      ids = tokenizer_.encode(prompt.text);
      if (std::ssize(ids) == length) return finished(std::move(prompt.text));
      while (std::ssize(ids) < length) ids.push_back(at(random_.integer(0, vocabulary() - 1)));
      ids.resize(static_cast<std::size_t>(length));
      prompt.text = tokenizer_.decode(ids, false);
    }
    return filled_up(std::move(prompt.text), length);
  }

 private:
  TokenId at(std::int64_t index) const { return static_cast<TokenId>(index % vocabulary_); }

  Prompt finished(std::string text) const {
    const std::int64_t tokens = count(tokenizer_, text);
    return {.text = std::move(text), .tokens = tokens};
  }

  Prompt filled_up(std::string text, std::int64_t length) {
    if (!filler_) filler_ = find_filler();
    std::int64_t keep = length;
    while (keep > 0) {
      const std::vector<TokenId> ids = tokenizer_.encode(text);
      const std::vector<TokenId> kept(ids.begin(),
                                      ids.begin() + std::min<std::int64_t>(keep, std::ssize(ids)));
      const std::string start = tokenizer_.decode(kept, false);
      const std::int64_t missing = length - count(tokenizer_, start);
      if (missing >= 0) {
        const std::string whole = start + repeated(*filler_, missing);
        if (count(tokenizer_, whole) == length) return finished(whole);
      }
      keep -= 1 + length / 16;  // a shorter start, whose end may take the filler better
    }
    return finished(repeated(*filler_, length));
  }

  /// A word whose repetitions add one token each. Falls back to the first candidate, and then prompts have
  /// the length that they have.
  std::string find_filler() const {
    constexpr std::array kCandidates = {" the", " a", " x", "x", " 1", "\n", "!"};
    for (const std::string word : kCandidates) {
      const std::int64_t some = count(tokenizer_, "a" + repeated(word, 2));
      if (count(tokenizer_, "a" + repeated(word, 3)) == some + 1 &&
          count(tokenizer_, "a" + repeated(word, 40)) == some + 38) {
        return word;
      }
    }
    return kCandidates.front();
  }

  const tokenizer::Tokenizer& tokenizer_;
  std::int64_t vocabulary_;
  NumpyRandom& random_;
  std::optional<std::string> filler_;
};

}  // namespace

std::int64_t drawn_vocabulary(const tokenizer::Tokenizer& tokenizer) {
  std::set<TokenId> added;
  for (const tokenizer::AddedToken& token : tokenizer.added_tokens()) added.insert(token.id);
  TokenId end = tokenizer.end_id();
  while (end > 0 && added.contains(end - 1)) --end;
  return end > 0 ? end : tokenizer.end_id();
}

std::vector<Prompt> text_prompts(std::span<const std::int64_t> lengths, const tokenizer::Tokenizer& tokenizer,
                                 bool as_ids, NumpyRandom& random,
                                 const std::function<void(std::size_t)>& on_made) {
  Fitter fitter(tokenizer, random);
  SEXTANT_CHECK_GT(fitter.vocabulary(), 0);
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    offsets.push_back(random.integer(0, fitter.vocabulary() - 1));
  }
  std::vector<Prompt> prompts;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    prompts.push_back(fitter.fit(offsets[i] + static_cast<std::int64_t>(i), lengths[i]));
    if (as_ids) prompts.back().ids = tokenizer.encode(prompts.back().text);
    if (on_made) on_made(prompts.size());
  }
  return prompts;
}

std::vector<Prompt> id_prompts(std::span<const std::int64_t> lengths, std::int64_t vocabulary,
                               NumpyRandom& random) {
  std::vector<Prompt> prompts;
  for (const std::int64_t length : lengths) {
    Prompt& prompt = prompts.emplace_back(Prompt{.tokens = length});
    for (std::int64_t j = 0; j < length; ++j) {
      prompt.ids.push_back(static_cast<TokenId>(random.integer(0, vocabulary - 1)));
    }
  }
  return prompts;
}

std::vector<Prompt> word_prompts(std::span<const std::int64_t> lengths, NumpyRandom& random) {
  constexpr std::array kWords = {"the", "of",  "and", "to",   "in",    "is",   "that", "for",
                                 "it",  "as",  "was", "with", "be",    "by",   "on",   "not",
                                 "he",  "his", "but", "at",   "are",   "this", "have", "from",
                                 "or",  "had", "an",  "they", "which", "one",  "you",  "were"};
  std::vector<Prompt> prompts;
  for (const std::int64_t length : lengths) {
    Prompt& prompt = prompts.emplace_back(Prompt{.tokens = length});
    for (std::int64_t j = 0; j < length; ++j) {
      if (j > 0) prompt.text += ' ';
      prompt.text += kWords[static_cast<std::size_t>(random.integer(0, std::ssize(kWords) - 1))];
    }
  }
  return prompts;
}

}  // namespace sextant::load
