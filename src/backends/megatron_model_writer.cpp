// The inverse of megatron_model.cpp: a model as Megatron-LM's arguments.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backends/layer_pattern.h"
#include "backends/megatron_model.h"

namespace sextant::backends {
namespace {

/// The first layer class that fits, or nullptr.
template <typename Predicate>
const model::LayerClass* first_class(const model::Model& model, Predicate fits) {
  for (const int index : model.class_of_layer) {
    const model::LayerClass& layer = model.classes[static_cast<std::size_t>(index)];
    if (fits(layer)) return &layer;
  }
  return nullptr;
}

bool has_experts(const model::LayerClass& layer) {
  return layer.mlp.kind == model::MlpKind::kMixtureOfExperts;
}

void set_if_positive(config::Node& keys, std::string_view key, std::int64_t value) {
  if (value > 0) {
    set_integer(keys, key, value);
  } else {
    set_null(keys, key);
  }
}

void write_attention(const model::Attention& attention, const KeyConventions& conventions,
                     const config::Node& existing, config::Node& keys) {
  set_integer(keys, "num_attention_heads", attention.heads);
  const bool latent = attention.kind == model::AttentionKind::kMultiLatent;
  const bool compressed = attention.kind == model::AttentionKind::kCompressed;
  const bool grouped = !latent && (attention.kv_heads != attention.heads || compressed);
  set_boolean(keys, "group_query_attention", grouped && !compressed);
  set_if_positive(keys, "num_query_groups", grouped ? attention.kv_heads : 0);
  if (latent) {
    set_null(keys, "kv_channels");
  } else {
    set_integer(keys, "kv_channels", attention.head_dim);
  }
  set_boolean(keys, "qk_layernorm", latent || attention.query_key_norm);
  set_boolean(keys, "add_bias_linear", attention.output_bias);
  set_boolean(keys, "add_qkv_bias", attention.qkv_bias);
  if (attention.output_gate || existing.find("attention_output_gate") != nullptr) {
    set_boolean(keys, "attention_output_gate", attention.output_gate);
  }
  set_boolean(keys, "multi_latent_attention", latent);
  if (latent || compressed) {
    set_if_positive(keys, "q_lora_rank", attention.query_latent_rank);
    set_integer(keys, "qk_pos_emb_head_dim", attention.rotary_head_dim);
  }
  if (latent) {
    set_integer(keys, "kv_lora_rank", attention.kv_latent_rank);
    set_integer(keys, "qk_head_dim", attention.head_dim);
    set_integer(keys, "v_head_dim", attention.value_head_dim);
  }
  if (compressed) {
    set_integer(keys, "attn_sliding_window", attention.window_tokens);
    set_boolean(keys, "attn_sink", attention.sinks);
    set_integer(keys, "o_groups", attention.output_groups);
    set_integer(keys, "o_lora_rank", attention.output_latent_rank);
  } else if (attention.sinks) {
    if (conventions.primus) {
      set_boolean(keys, "use_sink_attention", true);
    } else {
      set_text(keys, "softmax_type", "learnable");
    }
  }
}

void write_windows(const model::Model& model, config::Node& keys) {
  std::vector<int> windowed;
  std::int64_t window = 0;
  for (std::int64_t i = 0; i < model.layers(); ++i) {
    const model::Attention& attention = model.layer(i).attention;
    if (attention.kind == model::AttentionKind::kCompressed) return;
    windowed.push_back(attention.window_tokens > 0 ? 1 : 0);
    window = std::max(window, attention.window_tokens);
  }
  if (window == 0) return;
  set_text(keys, "window_size", fmt::format("{},0", window));
  if (std::ranges::find(windowed, 0) != windowed.end()) {
    set_text(keys, "window_attn_skip_freq", layer_pattern_text(windowed));
  }
}

void write_compression(const model::Model& model, config::Node& keys) {
  std::string ratios;
  std::int64_t hash_layers = 0;
  const model::Indexer* indexer = nullptr;
  for (std::int64_t i = 0; i < model.layers(); ++i) {
    const model::LayerClass& layer = model.layer(i);
    ratios += fmt::format("{}{}", i == 0 ? "" : ", ", layer.attention.compress_ratio);
    if (layer.mlp.hash_routing) ++hash_layers;
    if (layer.attention.indexer.heads > 0) indexer = &layer.attention.indexer;
  }
  if (model.mtp.depths > 0) {
    const auto index = static_cast<std::size_t>(model.mtp.layer_class);
    for (int i = 0; i < model.mtp.depths; ++i) {
      ratios += fmt::format(", {}", model.classes[index].attention.compress_ratio);
    }
  }
  set_text(keys, "model_type", "deepseek_v4");
  set_text(keys, "compress_ratios", "[" + ratios + "]");
  set_integer(keys, "num_hash_layers", hash_layers);
  set_integer(keys, "hc_mult", std::max<std::int64_t>(1, model.hyper_connections.streams));
  if (indexer != nullptr) {
    set_integer(keys, "index_n_heads", indexer->heads);
    set_integer(keys, "index_head_dim", indexer->head_dim);
    set_integer(keys, "index_topk", indexer->top_k);
  }
}

void write_activation(model::Activation activation, const config::Node& existing, config::Node& keys,
                      std::vector<std::string>& notes) {
  set_boolean(keys, "swiglu", activation == model::Activation::kSwiglu);
  set_boolean(keys, "squared_relu", activation == model::Activation::kSquaredRelu);
  if (activation == model::Activation::kGeglu || existing.find("quick_geglu") != nullptr) {
    set_boolean(keys, "quick_geglu", activation == model::Activation::kGeglu);
  }
  if (activation == model::Activation::kRelu) {
    notes.emplace_back("Megatron-LM has no flag for a plain ReLU: GELU is written, of the same cost");
  }
}

void write_experts(const model::Model& model, const model::LayerClass& layer, const config::Node& existing,
                   config::Node& keys) {
  const model::Mlp& mlp = layer.mlp;
  std::vector<int> pattern;
  for (std::int64_t i = 0; i < model.layers(); ++i) pattern.push_back(has_experts(model.layer(i)) ? 1 : 0);
  set_integer(keys, "num_experts", mlp.experts);
  if (std::ranges::find(pattern, 0) == pattern.end()) {
    set_integer(keys, "moe_layer_freq", 1);
  } else {
    set_text(keys, "moe_layer_freq", layer_pattern_text(pattern));
  }
  set_integer(keys, "moe_ffn_hidden_size", mlp.expert_ffn);
  set_if_positive(keys, "moe_shared_expert_intermediate_size", mlp.shared_expert_ffn);
  if (mlp.shared_expert_gate || existing.find("moe_shared_expert_gate") != nullptr) {
    set_boolean(keys, "moe_shared_expert_gate", mlp.shared_expert_gate);
  }
  set_integer(keys, "moe_router_topk", mlp.experts_per_token);
  set_boolean(keys, "moe_router_enable_expert_bias", mlp.router_bias);
  // Megatron-LM balances by a bias with sigmoid scores only (TransformerConfig.__post_init__).
  if (mlp.router_bias && existing.find_set("moe_router_score_function") == nullptr) {
    set_text(keys, "moe_router_score_function", "sigmoid");
  }
  set_if_positive(keys, "moe_router_num_groups", mlp.routing_groups);
  set_if_positive(keys, "moe_router_group_topk", mlp.routing_groups_per_token);
  if (mlp.latent > 0 || existing.find("moe_latent_size") != nullptr)
    set_if_positive(keys, "moe_latent_size", mlp.latent);
}

void write_mlps(const model::Model& model, const config::Node& existing, config::Node& keys,
                std::vector<std::string>& notes) {
  const model::LayerClass* dense = first_class(model, [](const auto& layer) { return !has_experts(layer); });
  const model::LayerClass* experts = first_class(model, has_experts);
  const model::Mlp& any = dense != nullptr ? dense->mlp : experts->mlp;
  set_integer(keys, "ffn_hidden_size", dense != nullptr ? any.ffn : any.expert_ffn);
  write_activation(any.activation, existing, keys, notes);
  if (experts != nullptr) {
    write_experts(model, *experts, existing, keys);
  } else {
    set_null(keys, "num_experts");
  }
}

void note_inexpressible(const model::Model& model, std::vector<std::string>& notes) {
  std::set<std::int64_t> widths;
  bool more_norms = false;
  for (const model::LayerClass& layer : model.classes) {
    if (!has_experts(layer)) widths.insert(layer.mlp.ffn);
    more_norms = more_norms || layer.norms != 2;
  }
  if (widths.size() > 1)
    notes.emplace_back("dense layers of different width cannot be said in Megatron-LM's arguments");
  if (more_norms)
    notes.emplace_back("norms after attention and MLP cannot be said in Megatron-LM's arguments");
  if (model.embedding_norm)
    notes.emplace_back("a norm after the embedding cannot be said in Megatron-LM's arguments");
  if (model.head_bias)
    notes.emplace_back("a bias of the output layer cannot be said in Megatron-LM's arguments");
}

}  // namespace

void write_model_keys(const model::Model& model, const KeyConventions& conventions,
                      const config::Node& existing, config::Node& keys, std::vector<std::string>& notes) {
  keys.kind = config::Node::Kind::kMapping;
  set_integer(keys, "num_layers", model.layers());
  set_integer(keys, "hidden_size", model.hidden);
  write_attention(model.layer(0).attention, conventions, existing, keys);
  write_windows(model, keys);
  if (model.layer(0).attention.kind == model::AttentionKind::kCompressed) write_compression(model, keys);
  write_mlps(model, existing, keys, notes);
  set_text(keys, "normalization", model.norm == model::Norm::kRmsNorm ? "RMSNorm" : "LayerNorm");
  set_text(keys, "position_embedding_type",
           model.positions == model::Positions::kRotary    ? "rope"
           : model.positions == model::Positions::kLearned ? "learned_absolute"
                                                           : "none");
  set_if_positive(keys, "max_position_embeddings", model.maximum_positions);
  set_boolean(keys, "untie_embeddings_and_output_weights", !model.tied_embeddings);
  set_number(keys, "hidden_dropout", model.hidden_dropout);
  set_number(keys, "attention_dropout", model.attention_dropout);
  if (model.mtp.depths > 0) {
    set_integer(keys, "mtp_num_layers", model.mtp.depths);
  } else {
    set_null(keys, "mtp_num_layers");
  }
  // Megatron-core counted one more token for the NullTokenizer until 0.17.
  constexpr int kLastWithExtraToken = 17;
  const bool one_more = !conventions.primus && conventions.generation <= kLastWithExtraToken;
  set_text(keys, "tokenizer_type", "NullTokenizer");
  set_integer(keys, "vocab_size", model.vocabulary - (one_more ? 1 : 0));
  note_inexpressible(model, notes);
}

}  // namespace sextant::backends
