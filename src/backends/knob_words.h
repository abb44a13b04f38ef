// Words as values of knobs: how they are compared, chosen and refused. Private to knobs*.cpp.
#pragma once

#include <fmt/core.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/node.h"
#include "parallel/layout.h"

namespace sextant::backends {

[[noreturn]] void refuse_knob(const config::Node& node, std::string_view knob, const std::string& what);

/// Equal up to case and '-' for '_'. Builds no strings.
bool same_word(std::string_view a, std::string_view b);

/// The trimmed text of a scalar; "none" for null. Throws base::UserError for lists and mappings.
std::string_view knob_word(const config::Node& node, std::string_view knob);

template <typename Value, std::size_t Count>
using Words = std::array<std::pair<std::string_view, Value>, Count>;

/// Sets `target` to the value of the node's word; throws base::UserError with all words for another one.
template <typename Value, std::size_t Count>
void choose_word(Value& target, const config::Node& node, std::string_view knob,
                 const Words<Value, Count>& words) {
  const std::string_view wanted = knob_word(node, knob);
  for (const auto& [word, value] : words) {
    if (same_word(word, wanted)) {
      target = value;
      return;
    }
  }
  std::vector<std::string> known;
  for (const auto& [word, value] : words) known.emplace_back(word);
  refuse_knob(node, knob,
              fmt::format("\"{}\" is unknown; give one of {}{}", wanted, base::join(known, ", "),
                          base::did_you_mean(base::lower_case(wanted), known)));
}

/// The recompute knob: "none", "selective", "selective:core_attn,moe_act", "selective:every:2", "full" (every
/// layer), "full:block:N", "full:uniform:N", "full:layers:0,1,30". Keeps distribute_saved_activations.
void set_recompute(parallel::Layout& layout, const config::Node& node, std::string_view knob);
std::string recompute_text(const parallel::Recompute& recompute);

}  // namespace sextant::backends
