// The JSON in what a model wrote.
#pragma once

#include <string>
#include <string_view>

namespace sextant::llm {

struct FoundJson {
  std::string json{};      ///< an object or array, as the model wrote it
  std::string problem{};   ///< not empty: there is none, and why, in words for the model
  bool truncated = false;  ///< it begins and does not end
};

/// The one JSON object or array in `text`. Found as it stands, between sentences, in a fence (``` or ~~~,
/// with or without a language), after a byte order mark or a `<think>` block. Nothing is repaired: what
/// cannot be read as it is, what ends too early, two different values, or a key twice with different values
/// is a problem, for guessing could turn it into another answer than the model meant.
FoundJson find_json(std::string_view text);

}  // namespace sextant::llm
