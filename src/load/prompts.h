// Prompts of given lengths.
//
// With a tokenizer, as InferenceX makes them: a run of neighbouring token ids from a random offset, decoded
// to text and encoded again until the length fits. Where ten rounds do not make it fit, the text is cut and
// filled up with one word that always encodes to one token, so that lengths are exact.
// Without a tokenizer: token ids, which are exact too but need a server that takes them; or words.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "load/numpy_random.h"
#include "tokenizer/tokenizer.h"

namespace sextant::load {

using tokenizer::TokenId;

struct Prompt {
  std::vector<TokenId> ids{};  ///< to be sent as ids; empty: the text is sent
  std::string text{};
  std::int64_t tokens = 0;  ///< that it really has; without a tokenizer words are counted as one each
};

/// Ids below this are drawn from: all but the added tokens (control tokens) that stand behind the vocabulary.
/// Where control tokens stand within it, as in many SentencePiece vocabularies, prompts may hold some.
std::int64_t drawn_vocabulary(const tokenizer::Tokenizer& tokenizer);

/// Prompt i is neighbouring ids from a random offset + i on. As in the reference, all offsets are drawn
/// first, then what fills up single prompts: the texts are those of InferenceX's client for the same seed.
/// `as_ids`: the ids themselves are sent.
/// `on_made` is told how many are made: long ones take a while.
std::vector<Prompt> text_prompts(std::span<const std::int64_t> lengths, const tokenizer::Tokenizer& tokenizer,
                                 bool as_ids, NumpyRandom& random,
                                 const std::function<void(std::size_t)>& on_made = {});

/// Ids drawn one by one from 0 … vocabulary − 1, so that no two prompts begin alike however few there are.
std::vector<Prompt> id_prompts(std::span<const std::int64_t> lengths, std::int64_t vocabulary,
                               NumpyRandom& random);

/// Short common English words, each one token for most tokenizers: about the length, where nothing better is
/// at hand.
std::vector<Prompt> word_prompts(std::span<const std::int64_t> lengths, NumpyRandom& random);

}  // namespace sextant::load
