#include "tokenizer/normalizer.h"

#include <optional>
#include <utility>

#include "tokenizer/pattern_matches.h"

namespace sextant::tokenizer {
namespace {

std::string apply(std::string text, NormalForm form) { return to_normal_form(text, form); }

std::string apply(std::string text, const Lowercase&) { return to_lower_case(text); }

std::string apply(std::string text, const Prepend& prepend) {
  return text.empty() ? text : prepend.text + text;
}

std::string apply(std::string text, const Replace& replace) {
  std::string out;
  std::size_t reached = 0;
  while (const auto match = next_match(replace.pattern, text, reached)) {
    out.append(text, reached, match->first - reached);
    out += replace.content;
    reached = match->second;
  }
  return out.append(text, reached);
}

std::string apply(std::string text, const StripSpace& strip) {
  std::size_t begin = 0;
  std::size_t end = text.size();
  while (strip.left && begin < end && is_white_space(character_at(text, begin).code)) {
    begin += character_at(text, begin).bytes;
  }
  while (strip.right && end > begin && is_white_space(character_before(text, end).code)) {
    end -= character_before(text, end).bytes;
  }
  return text.substr(begin, end - begin);
}

}  // namespace

std::string normalise(std::string text, const std::vector<NormalizerStep>& steps) {
  for (const NormalizerStep& step : steps) {
    text = std::visit([&text](const auto& what) { return apply(std::move(text), what); }, step);
  }
  return text;
}

}  // namespace sextant::tokenizer
