#include "model/parameters.h"

#include "model/parts.h"

namespace sextant::model {
namespace {

std::int64_t attention_total(const Model& model, const Attention& attention) {
  const AttentionParameters parts = attention_parameters(model, attention);
  return parts.sharded + parts.kv_sharded + parts.replicated;
}

std::int64_t layer_total(const Model& model, const LayerClass& layer) {
  const MlpParameters mlp = mlp_parameters(model, layer.mlp);
  return attention_total(model, layer.attention) + mlp.dense + mlp.routed_experts + mlp.shared_experts +
         mlp.router + layer.norms * norm_elements(model, model.hidden) +
         hyper_connection_elements(model).total();
}

}  // namespace

std::int64_t ParameterCounts::total() const {
  return embedding + attention + dense_mlp + routed_experts + shared_experts + router + norms + head + other;
}

ParameterCounts count_parameters(const Model& model) {
  ParameterCounts counts;
  const auto layers = model.layers_of_class();
  for (std::size_t c = 0; c < model.classes.size(); ++c) {
    const LayerClass& layer = model.classes[c];
    const MlpParameters mlp = mlp_parameters(model, layer.mlp);
    counts.attention += layers[c] * attention_total(model, layer.attention);
    counts.dense_mlp += layers[c] * mlp.dense;
    counts.routed_experts += layers[c] * mlp.routed_experts;
    counts.shared_experts += layers[c] * mlp.shared_experts;
    counts.router += layers[c] * mlp.router;
    counts.norms += layers[c] * layer.norms * norm_elements(model, model.hidden);
    counts.lookup_tables += layers[c] * mlp_elements(model, layer.mlp).lookup_table;
  }
  counts.embedding = model.vocabulary * model.hidden;
  if (model.positions == Positions::kLearned) counts.embedding += model.maximum_positions * model.hidden;
  if (!model.tied_embeddings) counts.head += model.vocabulary * model.hidden;
  if (model.head_bias) counts.head += model.vocabulary;
  if (model.final_norm) counts.norms += norm_elements(model, model.hidden);
  if (model.embedding_norm) counts.norms += norm_elements(model, model.hidden);
  counts.other = model.layers() * hyper_connection_elements(model).total() +
                 hyper_connection_head_elements(model).total();
  if (model.mtp.depths > 0) {
    const LayerClass& layer = model.classes[static_cast<std::size_t>(model.mtp.layer_class)];
    counts.mtp = model.mtp.depths * (layer_total(model, layer) + mtp_frame_elements(model).total());
  }
  return counts;
}

std::int64_t active_parameters(const Model& model) {
  std::int64_t total = count_parameters(model).total();
  const auto layers = model.layers_of_class();
  for (std::size_t c = 0; c < model.classes.size(); ++c) {
    const Mlp& mlp = model.classes[c].mlp;
    if (mlp.kind != MlpKind::kMixtureOfExperts) continue;
    const std::int64_t expert = mlp_parameters(model, mlp).routed_experts / mlp.experts;
    total -= layers[c] * (mlp.experts - mlp.experts_per_token) * expert;
  }
  return total;
}

AttentionParameters attention_parameters(const Model& model, const Attention& attention) {
  const AttentionElements elements = attention_elements(model, attention);
  return {.sharded = elements.sharded.total(),
          .kv_sharded = elements.kv_sharded.total(),
          .replicated = elements.replicated.total()};
}

MlpParameters mlp_parameters(const Model& model, const Mlp& mlp) {
  const MlpElements elements = mlp_elements(model, mlp);
  return {.dense = elements.dense.total(),
          .routed_experts = elements.routed_experts.total(),
          .shared_experts = elements.shared_experts.total(),
          .router = elements.router.total()};
}

}  // namespace sextant::model
