// Small text operations that messages and readers need.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::base {

std::string_view trim(std::string_view text);
std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string lower_case(std::string_view text);

/// The `count` candidates nearest to `word` by edit distance, nearest first, ties in the given order;
/// candidates further than half of the longer length are left out. For "did you mean" lines.
std::vector<std::string> nearest_names(std::string_view word, std::span<const std::string> candidates,
                                       std::size_t count = 3);

/// "; did you mean A, B or C?" for an error message, or "" when nothing is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace sextant::base
