// Source of names and defaults: huggingface/transformers src/transformers/modeling_rope_utils.py and
// models/{llama,mistral,qwen2,qwen3}/configuration_*.py.
#include "model/serving.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "model/huggingface.h"

namespace sextant::model {
namespace {

using config::Node;

/// `rope_parameters`, or the older `rope_scaling`; nullptr for neither.
const Node* rotary_mapping(const Node& document) {
  const Node* parameters = document.find_set("rope_parameters");
  return parameters != nullptr ? parameters : document.find_set("rope_scaling");
}

/// Source: _compute_yarn_parameters (get_mscale) of modeling_rope_utils.py.
double yarn_attention_factor(const Node& scaling, double factor) {
  const auto mscale = [factor](double weight) {
    return factor <= 1.0 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
  };
  if (const Node* stated = scaling.find_set("attention_factor")) return config::as_number(*stated);
  const Node* part = scaling.find_set("mscale");
  const Node* all = scaling.find_set("mscale_all_dim");
  if (part != nullptr && all != nullptr) {
    return mscale(config::as_number(*part)) / mscale(config::as_number(*all));
  }
  return mscale(1.0);
}

void read_scaling(const Node& document, const Node& mapping, Rotary& rotary) {
  const auto scaling = read_rope_scaling(document);
  if (!scaling) return;
  rotary.scaling = scaling->type;
  rotary.factor = scaling->factor;
  rotary.low_frequency_factor = scaling->low_freq_factor;
  rotary.high_frequency_factor = scaling->high_freq_factor;
  rotary.original_positions = static_cast<double>(scaling->original_maximum_positions);
  if (scaling->original_maximum_positions == 0) {
    rotary.original_positions = config::number_or(document, "max_position_embeddings", 0.0);
  }
  if (rotary.scaling != "yarn") return;
  rotary.beta_fast = config::number_or(mapping, "beta_fast", rotary.beta_fast);
  rotary.beta_slow = config::number_or(mapping, "beta_slow", rotary.beta_slow);
  rotary.truncate = config::boolean_or(mapping, "truncate", true);
  rotary.attention_factor = yarn_attention_factor(mapping, rotary.factor);
  if (!(rotary.original_positions > 0)) {
    throw base::UserError(
        mapping.position, mapping.path,
        "rope scaling of type 'yarn' needs 'original_max_position_embeddings' or the model's "
        "max_position_embeddings; add one");
  }
}

Rotary read_rotary(const Node& document) {
  Rotary rotary;
  rotary.theta = config::number_or(document, "rope_theta", rotary.theta);
  const Node* partial = document.find_set("partial_rotary_factor");
  if (const Node* mapping = rotary_mapping(document)) {
    for (const auto& [key, value] : config::require_mapping(*mapping).entries) {
      if (value.is_mapping()) {
        throw base::UserError(
            value.position, value.path,
            "rotary parameters by type of layer are not served; give one set for all layers");
      }
    }
    rotary.theta = config::number_or(*mapping, "rope_theta", rotary.theta);
    if (partial == nullptr) partial = mapping->find_set("partial_rotary_factor");
    read_scaling(document, *mapping, rotary);
  }
  if (partial != nullptr && config::as_number(*partial) != 1.0) {
    throw base::UserError(
        partial->position, partial->path,
        fmt::format("heads that are rotated only in part ({}) are not served", partial->text));
  }
  if (!(rotary.theta > 1.0)) {
    throw base::UserError(document.position, "rope_theta", "is impossible; give a number above 1");
  }
  return rotary;
}

}  // namespace

ServingFigures read_serving_figures(const Node& document) {
  ServingFigures figures;
  figures.family = config::text_or(document, "model_type", "");
  figures.norm_epsilon = config::number_or(document, "rms_norm_eps", figures.norm_epsilon);
  figures.activation = config::text_or(document, "hidden_act", "silu");
  figures.stored_type = config::text_or(document, "dtype", config::text_or(document, "torch_dtype", ""));
  figures.rotary = read_rotary(document);
  return figures;
}

std::vector<std::int64_t> token_ids_of(const Node* ids) {
  if (ids == nullptr) return {};
  if (ids->kind != Node::Kind::kSequence) return {config::as_integer(*ids)};
  if (ids->items.empty()) {
    throw base::UserError(ids->position, ids->path,
                          "is an empty list; give the ids that end a text, or remove the key");
  }
  std::vector<std::int64_t> result;
  for (const Node& item : ids->items) result.push_back(config::as_integer(item));
  return result;
}

std::vector<std::int64_t> read_generation_end_tokens(const Node& document) {
  return token_ids_of(document.find_set("eos_token_id"));
}

}  // namespace sextant::model
