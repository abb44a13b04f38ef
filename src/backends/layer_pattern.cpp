// A recursive-descent evaluator of the grammar
//   sum     = product { "+" product }
//   product = value { "*" value }
//   value   = number | "[" [ number { "," number } [","] ] "]" | "(" sum ")"
// with Python's meaning: list + list joins, list * number repeats.
#include "backends/layer_pattern.h"

#include <fmt/format.h>

#include <charconv>

namespace sextant::backends {
namespace {

constexpr std::size_t kMostItems = 100'000;
constexpr int kDeepestNesting = 50;

struct Refusal {
  std::string reason;
};

class Evaluator {
 public:
  explicit Evaluator(std::string_view text) : rest_(text) {}

  LayerPattern whole() {
    LayerPattern result = sum(0);
    skip_blanks();
    if (!rest_.empty()) throw Refusal{fmt::format("\"{}\" is not understood", rest_.substr(0, 20))};
    return result;
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\n'))
      rest_.remove_prefix(1);
  }

  bool take(char c) {
    skip_blanks();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::int64_t number() {
    skip_blanks();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) throw Refusal{"a whole number is missing"};
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  LayerPattern value(int depth) {
    if (depth > kDeepestNesting) throw Refusal{"it is nested too deeply"};
    if (take('(')) {
      LayerPattern inner = sum(depth + 1);
      if (!take(')')) throw Refusal{"a \")\" is missing"};
      return inner;
    }
    if (!take('[')) return number();
    std::vector<std::int64_t> items;
    while (!take(']')) {
      if (!items.empty() && !take(',')) throw Refusal{"a \",\" or \"]\" is missing"};
      if (take(']')) break;
      items.push_back(number());
    }
    return items;
  }

  LayerPattern product(int depth) {
    LayerPattern left = value(depth);
    while (take('*')) left = times(left, value(depth));
    return left;
  }

  LayerPattern sum(int depth) {
    LayerPattern left = product(depth);
    while (take('+')) left = plus(std::move(left), product(depth));
    return left;
  }

  static LayerPattern times(const LayerPattern& left, const LayerPattern& right) {
    const auto* count = std::get_if<std::int64_t>(&right);
    const auto* list = std::get_if<std::vector<std::int64_t>>(&left);
    if (count == nullptr && list == nullptr) return times(right, left);
    if (count == nullptr) throw Refusal{"a list times a list means nothing"};
    if (list == nullptr) {
      const std::int64_t factor = std::get<std::int64_t>(left);
      if (factor > 1'000'000 || *count > 1'000'000 || factor < 0 || *count < 0) {
        throw Refusal{"a number in it is out of range"};
      }
      return factor * *count;
    }
    if (*count < 0 || (!list->empty() && static_cast<std::uint64_t>(*count) > kMostItems / list->size())) {
      throw Refusal{fmt::format("it has more than {} items", kMostItems)};
    }
    std::vector<std::int64_t> repeated;
    if (list->empty()) return repeated;
    repeated.reserve(list->size() * static_cast<std::size_t>(*count));
    for (std::int64_t i = 0; i < *count; ++i) repeated.insert(repeated.end(), list->begin(), list->end());
    return repeated;
  }

  static LayerPattern plus(LayerPattern left, const LayerPattern& right) {
    auto* list = std::get_if<std::vector<std::int64_t>>(&left);
    const auto* more = std::get_if<std::vector<std::int64_t>>(&right);
    if (list == nullptr || more == nullptr) throw Refusal{"only lists can be joined with \"+\""};
    if (list->size() + more->size() > kMostItems) {
      throw Refusal{fmt::format("it has more than {} items", kMostItems)};
    }
    list->insert(list->end(), more->begin(), more->end());
    return left;
  }

  std::string_view rest_;
};

}  // namespace

bool evaluate_layer_pattern(std::string_view text, LayerPattern& pattern, std::string& error) {
  try {
    pattern = Evaluator(text).whole();
    return true;
  } catch (const Refusal& refusal) {
    error = refusal.reason;
    return false;
  }
}

std::string layer_pattern_text(const std::vector<int>& items) {
  std::string text = "(";
  for (std::size_t start = 0; start < items.size();) {
    std::size_t end = start;
    while (end < items.size() && items[end] == items[start]) ++end;
    text += fmt::format("{}[{}]*{}", start == 0 ? "" : "+", items[start], end - start);
    start = end;
  }
  return text + ")";
}

}  // namespace sextant::backends
