// Parameters of a model, counted exactly and per kind.
#pragma once

#include <cstdint>

#include "model/model.h"

namespace sextant::model {

/// Whole-model counts by kind. `total()` leaves multi-token prediction out and counts the unpadded
/// vocabulary.
struct ParameterCounts {
  std::int64_t embedding = 0;  ///< token and learned position tables
  std::int64_t attention = 0;  ///< projections, their biases, query/key norms, sinks, indexer, compressor
  std::int64_t dense_mlp = 0;
  std::int64_t routed_experts = 0;
  std::int64_t shared_experts = 0;
  std::int64_t router = 0;
  std::int64_t norms = 0;
  std::int64_t head = 0;  ///< 0 when tied
  std::int64_t mtp = 0;
  std::int64_t other = 0;  ///< hyper-connections
  /// Integer tables that a checkpoint stores but nothing trains (expert of each token id under hash routing).
  /// Not part of total().
  std::int64_t lookup_tables = 0;

  std::int64_t total() const;
};

ParameterCounts count_parameters(const Model& model);

/// Parameters a token passes through: as total(), with experts_per_token of the routed experts in each layer.
std::int64_t active_parameters(const Model& model);

/// One layer's attention parameters by how tensor parallelism treats them.
struct AttentionParameters {
  std::int64_t sharded = 0;  ///< split by tensor parallelism: head-wise projections
  std::int64_t kv_sharded =
      0;  ///< key-value head projections: split while kv_heads ≥ TP, else replicated per KV head
  std::int64_t replicated = 0;  ///< latent down-projections, their norms, query/key norms, sinks
};
AttentionParameters attention_parameters(const Model& model, const Attention& attention);

/// One layer's MLP parameters by bucket.
struct MlpParameters {
  std::int64_t dense = 0;           ///< dense MLP, split by TP
  std::int64_t routed_experts = 0;  ///< all experts together, split by EP·ETP
  std::int64_t shared_experts = 0;  ///< split by TP
  std::int64_t router = 0;          ///< replicated: router, shared-expert gate, latent projections
};
MlpParameters mlp_parameters(const Model& model, const Mlp& mlp);

/// Query-key pairs that one query computes on average in a sequence, counted continuously: sequence/2 for
/// causal attention, w·(1 − w/(2·sequence)) for a window of w ≤ sequence tokens, w/2 in chunks of w; with an
/// indexer top_k stands for w; compressed attention adds the compressed positions (sequence/compress_ratio of
/// them, at most the indexer's top_k) to its window.
double attention_pairs_per_token(const Attention& attention, double sequence_tokens);

/// Query-key pairs that the indexer of a layer scores for one query on average; 0 without an indexer.
double indexer_pairs_per_token(const Attention& attention, double sequence_tokens);

/// Model FLOPs of one token, forward and backward, without recomputation: 6 × the active matrix parameters
/// (embedding look-up, norms and biases excluded, head included, multi-token prediction included with its own
/// pass through the head), plus 6 × pairs × heads × (query-key width + value width) for attention scores and
/// values, at the pairs above: 12·layers·heads·head_dim·sequence/2 for plain causal attention. Source:
/// Megatron-LM num_floating_point_operations, arXiv 2104.04473 equation 3 with the causal half.
double model_flops_per_token(const Model& model, std::int64_t sequence_tokens);

}  // namespace sextant::model
