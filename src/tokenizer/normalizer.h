// What is done to text before it is cut: normal forms, lower case, replacements.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tokenizer/normal_form.h"
#include "tokenizer/split_pattern.h"

namespace sextant::tokenizer {

struct Lowercase {};
struct Prepend {
  std::string text;  ///< put before text that is not empty
};
/// Every match of a pattern, or every occurrence of a text, replaced.
struct Replace {
  std::variant<std::string, SplitPattern> pattern;
  std::string content;
};
struct StripSpace {
  bool left = true;
  bool right = true;
};
using NormalizerStep = std::variant<NormalForm, Lowercase, Prepend, Replace, StripSpace>;

/// All steps in order, on valid UTF-8.
std::string normalise(std::string text, const std::vector<NormalizerStep>& steps);

}  // namespace sextant::tokenizer
