// Stretched rotary frequencies, in the forms that Transformers has written since 2023: `rope_scaling` with
// `type`, then with `rope_type`, then `rope_parameters`, which may hold one mapping for each type of layer.
// Source: huggingface/transformers src/transformers/modeling_rope_utils.py (which fields each type needs).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "model/huggingface.h"
#include "model/huggingface_draft.h"

namespace sextant::model {
namespace {

using config::Node;

struct Type {
  std::string_view name;
  std::vector<std::string_view> fields;
};

const std::vector<Type>& types() {
  static const std::vector<Type> known = {
      {"default", {}},
      {"linear", {"factor"}},
      {"dynamic", {"factor"}},
      {"yarn", {"factor"}},
      {"longrope", {"short_factor", "long_factor"}},
      {"llama3", {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}},
  };
  return known;
}

/// Phi-3 called longrope "su" first; Qwen2-VL's "mrope" only assigns positions, frequencies stay.
std::string current_name(const std::string& name) {
  if (name == "su") return "longrope";
  if (name == "mrope") return "default";
  return name;
}

std::string type_of(const Node& scaling, bool may_be_unnamed) {
  const Node* newer = scaling.find_set("rope_type");
  const Node* older = scaling.find_set("type");
  if (newer == nullptr && older == nullptr) {
    if (may_be_unnamed && scaling.find_set("factor") == nullptr) return "default";
    throw base::UserError(
        scaling.position, scaling.path,
        "has neither 'rope_type' nor 'type'; add rope_type: linear, dynamic, yarn, longrope, llama3 "
        "or default");
  }
  const std::string name = current_name(config::as_text(newer != nullptr ? *newer : *older));
  if (newer != nullptr && older != nullptr && current_name(config::as_text(*older)) != name) {
    throw base::UserError(older->position, older->path,
                          fmt::format("is '{}', but rope_type is '{}'; keep one of them",
                                      config::as_text(*older), config::as_text(*newer)));
  }
  return name;
}

double positive(const Node& scaling, std::string_view key, double fallback) {
  const Node* node = scaling.find_set(key);
  if (node == nullptr) return fallback;
  const double value = config::as_number(*node);
  if (!(value > 0)) {
    throw base::UserError(node->position, node->path,
                          fmt::format("{} is impossible; give a number above 0", value));
  }
  return value;
}

std::optional<RopeScaling> read_one(const Node& scaling, bool may_be_unnamed) {
  RopeScaling result;
  result.type = type_of(config::require_mapping(scaling), may_be_unnamed);
  const auto type = std::ranges::find(types(), result.type, &Type::name);
  if (type == types().end()) {
    throw base::UserError(
        scaling.position, scaling.path,
        fmt::format("'{}' is no type of rope scaling that Sextant knows; known are default, linear, "
                    "dynamic, yarn, longrope and llama3",
                    result.type));
  }
  for (const auto field : type->fields) {
    if (scaling.find_set(field) != nullptr) continue;
    throw base::UserError(scaling.position, scaling.path,
                          fmt::format("rope scaling of type '{}' needs '{}'; add it", result.type, field));
  }
  if (result.type == "default") return std::nullopt;
  result.factor = positive(scaling, "factor", 1.0);
  result.low_freq_factor = positive(scaling, "low_freq_factor", 0.0);
  result.high_freq_factor = positive(scaling, "high_freq_factor", 0.0);
  result.original_maximum_positions = count_or(scaling, {"original_max_position_embeddings"}, 0);
  return result;
}

bool is_per_layer_type(const Node& parameters) {
  return !parameters.entries.empty() &&
         std::ranges::all_of(parameters.entries, [](const auto& entry) { return entry.second.is_mapping(); });
}

}  // namespace

std::optional<RopeScaling> read_rope_scaling(const Node& document) {
  std::optional<RopeScaling> result;
  if (const Node* parameters = document.find_set("rope_parameters")) {
    if (is_per_layer_type(*parameters)) {
      for (const auto& [layer_type, each] : parameters->entries) {
        const auto scaling = read_one(each, true);
        if (scaling) result = scaling;
      }
    } else {
      result = read_one(*parameters, true);
    }
  }
  if (const Node* scaling = document.find_set("rope_scaling")) {
    const auto older = read_one(*scaling, false);
    if (older) result = older;
  }
  return result;
}

}  // namespace sextant::model
