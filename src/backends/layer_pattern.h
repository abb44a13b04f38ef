// Per-layer patterns as Megatron-LM's arguments have them: "([0]*3+[1]*58)", "[1,0]*12", "2", or a sequence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sextant::backends {

/// One number, or a list of numbers.
using LayerPattern = std::variant<std::int64_t, std::vector<std::int64_t>>;

/// Evaluates the Python expression that Megatron-LM hands to eval(): whole numbers, lists, `+` and `*` and
/// parentheses. Returns false with a sentence in `error` for anything else, and for more than 100,000 items.
bool evaluate_layer_pattern(std::string_view text, LayerPattern& pattern, std::string& error);

/// The shortest usual way to write a 0/1 list: "([0]*3+[1]*58)".
std::string layer_pattern_text(const std::vector<int>& items);

}  // namespace sextant::backends
