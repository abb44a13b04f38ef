#include <algorithm>

#include "model/parameters.h"
#include "model/parts.h"

namespace sextant::model {
namespace {

/// Average number of positions that a query sees of those behind it, when at most `limit` count and the last
/// query has `reach` behind it: the mean of min(x, limit) over x from 0 to reach.
double limited_mean(double limit, double reach) {
  return limit >= reach ? reach / 2 : limit * (1 - limit / (2 * reach));
}

double window_pairs(const Attention& attention, double sequence) {
  const auto window = static_cast<double>(attention.window_tokens);
  if (attention.window_tokens == 0 || window >= sequence) return sequence / 2;
  return attention.window_is_chunk ? window / 2 : limited_mean(window, sequence);
}

/// Matrix elements of a layer that one token is multiplied with.
double active_matrices(const Model& model, const LayerClass& layer) {
  const AttentionElements attention = attention_elements(model, layer.attention);
  const MlpElements mlp = mlp_elements(model, layer.mlp);
  double routed = 0;
  if (layer.mlp.kind == MlpKind::kMixtureOfExperts) {
    routed = static_cast<double>(mlp.routed_experts.matrices) *
             static_cast<double>(layer.mlp.experts_per_token) / static_cast<double>(layer.mlp.experts);
  }
  return static_cast<double>(attention.sharded.matrices + attention.kv_sharded.matrices +
                             attention.replicated.matrices + mlp.dense.matrices +
                             mlp.shared_experts.matrices + mlp.router.matrices +
                             hyper_connection_elements(model).matrices) +
         routed;
}

/// Multiply-adds of scores and values, and of the indexer's scores, for one token.
double attention_products(const Attention& attention, double sequence) {
  double query_key_width = static_cast<double>(attention.head_dim);
  if (attention.kind == AttentionKind::kMultiLatent)
    query_key_width += static_cast<double>(attention.rotary_head_dim);
  const double widths = query_key_width + static_cast<double>(attention.value_head_dim);
  return attention_pairs_per_token(attention, sequence) * static_cast<double>(attention.heads) * widths +
         indexer_pairs_per_token(attention, sequence) *
             static_cast<double>(attention.indexer.heads * attention.indexer.head_dim);
}

}  // namespace

double attention_pairs_per_token(const Attention& attention, double sequence_tokens) {
  const double window = window_pairs(attention, sequence_tokens);
  if (attention.kind == AttentionKind::kCompressed) {
    if (attention.compress_ratio == 0) return window;
    const double reach = sequence_tokens / static_cast<double>(attention.compress_ratio);
    const double limit = attention.indexer.heads > 0 ? static_cast<double>(attention.indexer.top_k) : reach;
    return window + limited_mean(limit, reach);
  }
  if (attention.indexer.heads > 0) {
    return std::min(window, limited_mean(static_cast<double>(attention.indexer.top_k), sequence_tokens));
  }
  return window;
}

double indexer_pairs_per_token(const Attention& attention, double sequence_tokens) {
  if (attention.indexer.heads == 0) return 0;
  const auto ratio = static_cast<double>(std::max<std::int64_t>(attention.compress_ratio, 1));
  return sequence_tokens / ratio / 2;
}

double model_flops_per_token(const Model& model, std::int64_t sequence_tokens) {
  // Two FLOPs a multiply-add; forward once, backward twice.
  constexpr double kFlopsPerElement = 6;
  const auto sequence = static_cast<double>(sequence_tokens);
  const auto head =
      static_cast<double>(model.vocabulary * model.hidden + hyper_connection_head_elements(model).matrices);
  double elements = head;
  const auto layers = model.layers_of_class();
  for (std::size_t c = 0; c < model.classes.size(); ++c) {
    const LayerClass& layer = model.classes[c];
    elements += static_cast<double>(layers[c]) *
                (active_matrices(model, layer) + attention_products(layer.attention, sequence));
  }
  if (model.mtp.depths > 0) {
    const LayerClass& layer = model.classes[static_cast<std::size_t>(model.mtp.layer_class)];
    elements +=
        model.mtp.depths * (active_matrices(model, layer) + attention_products(layer.attention, sequence) +
                            static_cast<double>(mtp_frame_elements(model).matrices) +
                            static_cast<double>(model.vocabulary * model.hidden));
  }
  return kFlopsPerElement * elements;
}

}  // namespace sextant::model
