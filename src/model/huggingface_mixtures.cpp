// Mixtures of experts with grouped-query attention.
// Source of each rule: huggingface/transformers src/transformers/models/<family>/configuration_*.py and
// modeling_*.py.
#include <algorithm>

#include "base/error.h"
#include "model/huggingface_families.h"

namespace sextant::model {
namespace {

void read_core(Draft& draft) {
  read_dimensions(draft);
  read_heads(draft);
  draft.dense.activation = read_activation(draft, true);
}

void mixtral(Draft& draft) {
  read_core(draft);
  read_experts(draft, {"intermediate_size"});
  const bool bias = flag_or(draft.config, "attention_bias", false);
  set_attention_bias(draft, bias, bias);
  read_tied_embeddings(draft, false);
  if (!read_layer_types(draft)) read_uniform_window(draft);
}

void phimoe(Draft& draft) {
  mixtral(draft);
  draft.out.model.norm = Norm::kLayerNorm;
  draft.out.model.head_bias = flag_or(draft.config, "lm_head_bias", false);
}

/// Layers in mlp_only_layers are dense, of the others every decoder_sparse_step-th has experts.
void qwen_sparsity(Draft& draft) {
  draft.dense.ffn = count_or(draft.config, {"intermediate_size"}, 0);
  if (read_mlp_layer_types(draft)) return;
  const std::int64_t step = count_or(draft.config, {"decoder_sparse_step"}, 1);
  std::vector<std::int64_t> dense;
  if (const config::Node* list = draft.config.find_set("mlp_only_layers")) {
    for (const auto& item : config::require_sequence(*list).items) dense.push_back(config::as_integer(item));
  }
  for (std::int64_t i = 0; i < draft.layers; ++i) {
    draft.sparse.push_back((i + 1) % step == 0 && std::ranges::find(dense, i) == dense.end());
  }
}

void qwen2_moe(Draft& draft) {
  read_core(draft);
  read_experts(draft, {"moe_intermediate_size"});
  draft.experts.shared_expert_ffn = size_or(draft.config, "shared_expert_intermediate_size", 0);
  draft.experts.shared_expert_gate = draft.experts.shared_expert_ffn > 0;
  set_attention_bias(draft, flag_or(draft.config, "qkv_bias", true), false);
  read_tied_embeddings(draft, false);
  qwen_sparsity(draft);
  read_qwen_windows(draft);
}

void qwen3_moe(Draft& draft) {
  read_core(draft);
  read_experts(draft, {"moe_intermediate_size"});
  const bool bias = flag_or(draft.config, "attention_bias", false);
  set_attention_bias(draft, bias, bias);
  draft.attention.query_key_norm = true;
  read_tied_embeddings(draft, false);
  qwen_sparsity(draft);
  read_qwen_windows(draft);
}

void olmoe(Draft& draft) {
  mixtral(draft);
  draft.attention.query_key_norm = true;
  draft.attention.query_key_norm_all_heads = true;
}

/// Sinks, biases everywhere, every second layer with a window, the first of them.
void gpt_oss(Draft& draft) {
  read_core(draft);
  read_experts(draft, {"intermediate_size"});
  draft.experts.bias = true;
  draft.experts.router_linear_bias = true;
  const bool bias = flag_or(draft.config, "attention_bias", true);
  set_attention_bias(draft, bias, bias);
  draft.attention.sinks = true;
  read_tied_embeddings(draft, false);
  if (read_layer_types(draft)) return;
  const std::int64_t window = required_count(draft.config, {"sliding_window"});
  for (std::int64_t i = 0; i < draft.layers; ++i) draft.windows.push_back(i % 2 == 0 ? window : 0);
}

void minimax_m2(Draft& draft) {
  read_core(draft);
  read_experts(draft, {"intermediate_size"});
  draft.experts.router_bias = flag_or(draft.config, "use_routing_bias", true);
  draft.attention.query_key_norm = flag_or(draft.config, "use_qk_norm", true);
  draft.attention.query_key_norm_all_heads =
      config::text_or(draft.config, "qk_norm_type", "per_layer") == "per_layer";
  read_tied_embeddings(draft, false);
  if (flag_or(draft.config, "use_mtp", false)) read_mtp(draft, "num_mtp_modules");
}

void glm4_moe(Draft& draft) {
  read_core(draft);
  draft.dense.ffn = required_count(draft.config, {"intermediate_size"});
  read_experts(draft, {"moe_intermediate_size"});
  draft.experts.router_bias = true;
  draft.experts.shared_expert_ffn = size_or(draft.config, "n_shared_experts", 0) * draft.experts.expert_ffn;
  set_attention_bias(draft, flag_or(draft.config, "attention_bias", false), false);
  draft.attention.query_key_norm = flag_or(draft.config, "use_qk_norm", false);
  read_tied_embeddings(draft, false);
  read_first_dense_layers(draft);
  read_mtp(draft);
}

/// Llama 4: one routed and one shared expert a token, dense layers between; three of four layers attend
/// within chunks.
void llama4(Draft& draft) {
  read_core(draft);
  draft.dense.ffn = required_count(draft.config, {"intermediate_size_mlp"});
  read_experts(draft, {"intermediate_size"});
  draft.experts.shared_expert_ffn = draft.experts.expert_ffn;
  const bool bias = flag_or(draft.config, "attention_bias", false);
  set_attention_bias(draft, bias, bias);
  read_tied_embeddings(draft, false);
  const std::int64_t step = count_or(draft.config, {"interleave_moe_layer_step"}, 1);
  draft.sparse.assign(static_cast<std::size_t>(draft.layers), false);
  if (const config::Node* listed = draft.config.find_set("moe_layers")) {
    for (const auto& item : config::require_sequence(*listed).items) {
      const std::int64_t layer = config::as_integer(item);
      if (layer < 0 || layer >= draft.layers) {
        throw base::UserError(item.position, item.path, "there is no such layer; layers count from 0");
      }
      draft.sparse[static_cast<std::size_t>(layer)] = true;
    }
  } else {
    for (std::int64_t i = step - 1; i < draft.layers; i += step)
      draft.sparse[static_cast<std::size_t>(i)] = true;
  }
  if (read_layer_types(draft) || draft.config.find_set("attention_chunk_size") == nullptr) return;
  const std::int64_t chunk = required_count(draft.config, {"attention_chunk_size"});
  draft.attention.window_is_chunk = true;
  // One entry a layer: 1 = rotary positions and chunks, 0 = neither.
  const config::Node* rotary = draft.config.find_set("no_rope_layers");
  const bool listed =
      rotary != nullptr &&
      static_cast<std::int64_t>(config::require_sequence(*rotary).items.size()) >= draft.layers;
  constexpr std::int64_t kUsualInterval = 4;
  const std::int64_t interval = count_or(draft.config, {"no_rope_layer_interval"}, kUsualInterval);
  for (std::int64_t i = 0; i < draft.layers; ++i) {
    const bool full = listed ? config::as_integer(rotary->items[static_cast<std::size_t>(i)]) == 0
                             : (i + 1) % interval == 0;
    draft.windows.push_back(full ? 0 : chunk);
  }
}

}  // namespace

const std::vector<Family>& mixture_families() {
  static const std::vector<Family> families = {
      {"mixtral", "MixtralForCausalLM", mixtral},
      {"phimoe", "PhimoeForCausalLM", phimoe},
      {"qwen2_moe", "Qwen2MoeForCausalLM", qwen2_moe},
      {"qwen3_moe", "Qwen3MoeForCausalLM", qwen3_moe},
      {"qwen3_vl_moe_text", "", qwen3_moe},
      {"olmoe", "OlmoeForCausalLM", olmoe},
      {"gpt_oss", "GptOssForCausalLM", gpt_oss},
      {"minimax_m2", "MiniMaxM2ForCausalLM", minimax_m2},
      {"glm4_moe", "Glm4MoeForCausalLM", glm4_moe},
      {"llama4", "Llama4ForCausalLM", llama4},
      {"llama4_text", "", llama4},
  };
  return families;
}

}  // namespace sextant::model
