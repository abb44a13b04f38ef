// What an LLM is: the architecture record that everything else is computed from.
//
// Layers of one model differ (dense first layers, sliding windows, compressed attention), but only in a few
// ways: a model holds the distinct *layer classes* once and, for every layer, which class it is. Costs are
// computed per class and summed by count. Plain data; shared read-only between threads once built.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sextant::model {

enum class AttentionKind {
  kGroupedQuery,  ///< multi-head, multi-query and grouped-query attention
  kMultiLatent,   ///< DeepSeek-V2/V3 latent attention (arXiv 2405.04434)
  kCompressed,    ///< DeepSeek-V4: shared key-value latent, sliding window plus compressed branch, grouped
                  ///< output
};

/// Lightning indexer: a small attention that selects `top_k` of the positions (latent attention,
/// DeepSeek-V3.2) or of the compressed positions (compressed attention, DeepSeek-V4) for the main one.
struct Indexer {
  std::int64_t heads = 0;  ///< 0: this layer has none
  std::int64_t head_dim = 0;
  std::int64_t top_k = 0;
};

struct Attention {
  AttentionKind kind = AttentionKind::kGroupedQuery;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;        ///< key-value heads ("query groups")
  std::int64_t head_dim = 0;        ///< of queries and keys; for latent attention without the rotary part
  std::int64_t value_head_dim = 0;  ///< equal to head_dim except for latent attention
  std::int64_t window_tokens = 0;   ///< sliding window; 0 = full causal attention
  bool window_is_chunk = false;     ///< aligned chunks of window_tokens instead of a sliding window (Llama 4)
  bool query_key_norm = false;      ///< a norm on each query and key head
  bool query_key_norm_all_heads =
      false;              ///< that norm has weights for all heads together (OLMo 2, MiniMax-M2)
  bool qkv_bias = false;  ///< latent attention: on the two down-projections
  bool output_bias = false;
  bool sinks = false;  ///< one learned logit a head (GPT-OSS, DeepSeek-V4)
  bool output_gate =
      false;  ///< queries projected twice as wide, the second half gates the output (Qwen3-Next)

  // Latent and compressed attention.
  std::int64_t query_latent_rank = 0;  ///< 0: queries are projected directly
  std::int64_t kv_latent_rank = 0;
  std::int64_t rotary_head_dim = 0;  ///< rotary part of each query head, and of the one shared key

  // Compressed attention only.
  std::int64_t compress_ratio = 0;  ///< 0: window only; 4: with indexer; 128: heavily compressed
  std::int64_t output_groups = 0;
  std::int64_t output_latent_rank = 0;
  Indexer indexer = {};
};

enum class Activation { kSwiglu, kGeglu, kGelu, kRelu, kSquaredRelu };
bool is_gated(Activation activation);

enum class MlpKind { kDense, kMixtureOfExperts };

struct Mlp {
  MlpKind kind = MlpKind::kDense;
  Activation activation = Activation::kSwiglu;
  bool bias = false;
  std::int64_t ffn = 0;  ///< dense: width after the activation

  // Mixture of experts.
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t expert_ffn = 0;
  std::int64_t shared_expert_ffn = 0;  ///< total width of the shared experts; 0 = none
  bool shared_expert_gate = false;     ///< a hidden → 1 gate on the shared expert
  bool router_bias = false;            ///< a trained or balancing bias per expert, counted as parameters
  bool router_linear_bias = false;     ///< bias of the router's linear layer (GPT-OSS)
  bool hash_routing = false;           ///< experts by token id (DeepSeek-V4's first layers)
  std::int64_t routing_groups = 0;     ///< group-limited routing; 0 = none
  std::int64_t routing_groups_per_token = 0;
  std::int64_t latent = 0;  ///< experts work on a projected width (latent MoE); 0 = hidden
};

enum class Norm { kRmsNorm, kLayerNorm };
enum class Positions { kRotary, kLearned, kNone };

struct LayerClass {
  std::string name;  ///< "dense", "moe", "moe window", unique in its model
  Attention attention;
  Mlp mlp;
  /// Norm vectors of width `hidden` in a layer: 2 (before attention and MLP); 4 with norms after them too.
  int norms = 2;
};

/// Hyper-connections (DeepSeek-V4, arXiv 2409.19606): `streams` residual streams mixed before and after each
/// sub-layer, and once more before the head. 0 = a plain residual.
struct HyperConnections {
  std::int64_t streams = 0;
};

/// Multi-token prediction (DeepSeek-V3): `depths` extra layers of class `layer_class`, each with two norms
/// and a 2·hidden → hidden projection before it, a norm after it, and the model's own embedding and head.
struct MultiTokenPrediction {
  int depths = 0;
  int layer_class = 0;  ///< index into Model::classes
};

struct Model {
  std::string name;
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;  ///< unpadded; the rows a tokenizer can produce, or config.json's vocab_size
  std::int64_t maximum_positions = 0;  ///< 0 = unstated; sizes the table of learned positions
  Norm norm = Norm::kRmsNorm;
  bool norm_bias = true;  ///< LayerNorm has a bias besides its weight (MPT: no); RMSNorm never has
  Positions positions = Positions::kRotary;
  bool tied_embeddings = false;
  bool final_norm = true;
  bool embedding_norm = false;  ///< BLOOM: a LayerNorm after the embedding
  bool head_bias = false;
  double hidden_dropout = 0.0;
  double attention_dropout = 0.0;
  HyperConnections hyper_connections;
  MultiTokenPrediction mtp;

  std::vector<LayerClass> classes;
  std::vector<int> class_of_layer;  ///< one entry a layer, index into `classes`

  std::int64_t layers() const { return static_cast<std::int64_t>(class_of_layer.size()); }
  const LayerClass& layer(std::int64_t index) const {
    return classes[static_cast<std::size_t>(class_of_layer[static_cast<std::size_t>(index)])];
  }
  bool has_experts() const;
  /// Layers of each class, same order as `classes`.
  std::vector<std::int64_t> layers_of_class() const;
};

/// A model of `layers` equal layers.
Model uniform_model(std::string name, std::int64_t layers, LayerClass layer_class);

/// Throws base::UserError naming the first impossible dimension (zero, negative, heads not divisible by kv
/// heads …).
void require_sane(const Model& model);

}  // namespace sextant::model
