// Shapes of every weight of a layer, family by family.
//
// Grouped-query attention: q [heads·d, hidden], k and v [kv_heads·d, hidden], o [hidden, heads·d_v].
//
// Latent attention (DeepSeek-V2, arXiv 2405.04434 section 2.1): queries either directly, or down to a latent
// and up to heads·(d + d_rope); keys and values down to a shared latent plus one rotary key, and up to
// heads·(d + d_v). With an indexer (DeepSeek-V3.2's model code): index queries from the query latent, one
// index key a token with a LayerNorm, one weight a head.
//
// Compressed attention (DeepSeek-V4; shapes as in the checkpoints' safetensors headers): queries through a
// latent; one key-value vector of width d a token, keys and values alike; outputs in groups, each down to
// output_latent_rank, then up to hidden. Layers with a compress_ratio pool `ratio` tokens into one position
// with two projections (values and gate), a position bias and a norm; at ratio 4 neighbouring pools overlap,
// which doubles the pooled width, and an indexer with its own pooling selects positions.
#include "model/parts.h"

namespace sextant::model {
namespace {

/// Ratio whose pools overlap and whose layers have an indexer (DeepSeek-V4).
constexpr std::int64_t kOverlappingRatio = 4;

AttentionElements grouped_query(const Model& model, const Attention& a) {
  AttentionElements result;
  const std::int64_t queries = a.heads * a.head_dim * (a.output_gate ? 2 : 1);
  const std::int64_t keys = a.kv_heads * a.head_dim;
  const std::int64_t values = a.kv_heads * a.value_head_dim;
  result.sharded.matrices = model.hidden * queries + a.heads * a.value_head_dim * model.hidden;
  result.kv_sharded.matrices = model.hidden * (keys + values);
  if (a.qkv_bias) {
    result.sharded.vectors += queries;
    result.kv_sharded.vectors += keys + values;
  }
  if (a.query_key_norm) {
    const std::int64_t width =
        a.query_key_norm_all_heads ? (a.heads + a.kv_heads) * a.head_dim : 2 * a.head_dim;
    result.replicated.vectors += norm_elements(model, width);
  }
  return result;
}

AttentionElements latent(const Model& model, const Attention& a) {
  AttentionElements result;
  const std::int64_t query_width = a.heads * (a.head_dim + a.rotary_head_dim);
  const std::int64_t kv_down = a.kv_latent_rank + a.rotary_head_dim;
  if (a.query_latent_rank > 0) {
    result.replicated.matrices += model.hidden * a.query_latent_rank;
    result.replicated.vectors +=
        norm_elements(model, a.query_latent_rank) + (a.qkv_bias ? a.query_latent_rank : 0);
    result.sharded.matrices += a.query_latent_rank * query_width;
  } else {
    result.sharded.matrices += model.hidden * query_width;
  }
  result.replicated.matrices += model.hidden * kv_down;
  result.replicated.vectors += norm_elements(model, a.kv_latent_rank) + (a.qkv_bias ? kv_down : 0);
  result.sharded.matrices += a.kv_latent_rank * a.heads * (a.head_dim + a.value_head_dim);
  result.sharded.matrices += a.heads * a.value_head_dim * model.hidden;
  if (a.indexer.heads > 0) {
    const std::int64_t query_input = a.query_latent_rank > 0 ? a.query_latent_rank : model.hidden;
    result.replicated.matrices += query_input * a.indexer.heads * a.indexer.head_dim +
                                  model.hidden * (a.indexer.head_dim + a.indexer.heads);
    result.replicated.vectors +=
        2 * a.indexer.head_dim;  // LayerNorm on the index key, whatever the model's norm
  }
  return result;
}

/// Pooling of `ratio` tokens into one vector of `width`.
Elements compressor(const Model& model, std::int64_t ratio, std::int64_t width) {
  const std::int64_t pooled = width * (ratio == kOverlappingRatio ? 2 : 1);
  return {.matrices = 2 * model.hidden * pooled, .vectors = ratio * pooled + norm_elements(model, width)};
}

AttentionElements compressed(const Model& model, const Attention& a) {
  AttentionElements result;
  result.sharded.matrices = a.query_latent_rank * a.heads * a.head_dim +
                            a.output_latent_rank * a.heads * a.head_dim +
                            model.hidden * a.output_groups * a.output_latent_rank;
  result.replicated.matrices = model.hidden * (a.query_latent_rank + a.head_dim);
  result.replicated.vectors = norm_elements(model, a.query_latent_rank) + norm_elements(model, a.head_dim);
  const auto add = [&result](Elements part) {
    result.replicated.matrices += part.matrices;
    result.replicated.vectors += part.vectors;
  };
  if (a.compress_ratio > 0) add(compressor(model, a.compress_ratio, a.head_dim));
  if (a.indexer.heads > 0) {
    add(compressor(model, a.compress_ratio, a.indexer.head_dim));
    add({.matrices =
             model.hidden * a.indexer.heads + a.query_latent_rank * a.indexer.heads * a.indexer.head_dim,
         .vectors = 0});
  }
  return result;
}

/// A feed-forward block [hidden → ffn → hidden], with an additional gate when the activation has one.
Elements feed_forward(std::int64_t hidden, std::int64_t ffn, const Mlp& mlp) {
  const std::int64_t inputs = is_gated(mlp.activation) ? 2 : 1;
  return {.matrices = (inputs + 1) * hidden * ffn, .vectors = mlp.bias ? inputs * ffn + hidden : 0};
}

}  // namespace

AttentionElements attention_elements(const Model& model, const Attention& attention) {
  AttentionElements result;
  switch (attention.kind) {
    case AttentionKind::kGroupedQuery:
      result = grouped_query(model, attention);
      break;
    case AttentionKind::kMultiLatent:
      result = latent(model, attention);
      break;
    case AttentionKind::kCompressed:
      result = compressed(model, attention);
      break;
  }
  if (attention.output_bias) result.replicated.vectors += model.hidden;
  if (attention.sinks) result.replicated.vectors += attention.heads;
  return result;
}

MlpElements mlp_elements(const Model& model, const Mlp& mlp) {
  MlpElements result;
  if (mlp.kind == MlpKind::kDense) {
    result.dense = feed_forward(model.hidden, mlp.ffn, mlp);
    return result;
  }
  const std::int64_t width = mlp.latent > 0 ? mlp.latent : model.hidden;
  const Elements expert = feed_forward(width, mlp.expert_ffn, mlp);
  result.routed_experts = {.matrices = mlp.experts * expert.matrices,
                           .vectors = mlp.experts * expert.vectors};
  if (mlp.shared_expert_ffn > 0)
    result.shared_experts = feed_forward(model.hidden, mlp.shared_expert_ffn, mlp);
  result.router.matrices = model.hidden * mlp.experts;
  if (mlp.router_bias && !mlp.hash_routing) result.router.vectors += mlp.experts;
  if (mlp.router_linear_bias) result.router.vectors += mlp.experts;
  if (mlp.shared_expert_gate) result.router.matrices += model.hidden;
  if (mlp.latent > 0) result.router.matrices += 2 * model.hidden * mlp.latent;
  if (mlp.hash_routing) result.lookup_table = model.vocabulary * mlp.experts_per_token;
  return result;
}

std::int64_t norm_elements(const Model& model, std::int64_t width) {
  return model.norm == Norm::kLayerNorm && model.norm_bias ? 2 * width : width;
}

// For n streams each sub-layer maps the n·hidden stream state to n input weights, n output weights and an n ×
// n mixing matrix, with a bias each and three scales (hc_*_fn, hc_*_base, hc_*_scale of the checkpoints).
Elements hyper_connection_elements(const Model& model) {
  const std::int64_t n = model.hyper_connections.streams;
  if (n == 0) return {};
  const std::int64_t outputs = (2 + n) * n;
  return {.matrices = 2 * outputs * n * model.hidden, .vectors = 2 * (outputs + 3)};
}

Elements hyper_connection_head_elements(const Model& model) {
  const std::int64_t n = model.hyper_connections.streams;
  if (n == 0) return {};
  return {.matrices = n * n * model.hidden, .vectors = n + 1};
}

Elements mtp_frame_elements(const Model& model) {
  const Elements head = hyper_connection_head_elements(model);
  return {.matrices = 2 * model.hidden * model.hidden + head.matrices,
          .vectors = 3 * norm_elements(model, model.hidden) + head.vectors};
}

}  // namespace sextant::model
