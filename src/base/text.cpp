#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace sextant::base {
namespace {

// Levenshtein distance, two rows.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::vector<std::string> nearest_names(std::string_view word, std::span<const std::string> candidates,
                                       std::size_t count) {
  std::vector<std::pair<std::size_t, std::size_t>> ranked;  // distance, index
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::size_t distance = edit_distance(word, candidates[i]);
    if (2 * distance <= std::max(word.size(), candidates[i].size())) ranked.emplace_back(distance, i);
  }
  std::ranges::sort(ranked);
  std::vector<std::string> names;
  for (const auto& [distance, index] : ranked) {
    if (names.size() == count) break;
    names.push_back(candidates[index]);
  }
  return names;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::vector<std::string> names = nearest_names(word, candidates);
  if (names.empty()) return {};
  std::string text = "; did you mean " + names[0];
  for (std::size_t i = 1; i < names.size(); ++i) text += (i + 1 == names.size() ? " or " : ", ") + names[i];
  return text + "?";
}

}  // namespace sextant::base
