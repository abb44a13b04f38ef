// Llama and its relatives: RMSNorm, rotary positions, gated MLPs, no biases unless said.
// Source of each rule: huggingface/transformers src/transformers/models/<family>/configuration_*.py and
// modeling_*.py.
#include "model/huggingface_families.h"

namespace sextant::model {
namespace {

/// Dimensions, heads and a dense MLP. `gated`: whatever the activation.
void read_dense(Draft& draft, bool gated) {
  read_dimensions(draft);
  read_heads(draft);
  draft.dense.activation = read_activation(draft, gated);
  draft.dense.ffn = required_count(draft.config, {"intermediate_size"});
}

void layer_norm(Draft& draft, bool bias) {
  draft.out.model.norm = Norm::kLayerNorm;
  draft.out.model.norm_bias = bias;
}

void llama(Draft& draft) {
  read_dense(draft, true);
  const bool bias = flag_or(draft.config, "attention_bias", false);
  set_attention_bias(draft, bias, bias);
  draft.dense.bias = flag_or(draft.config, "mlp_bias", false);
  read_tied_embeddings(draft, false);
  read_layer_types(draft);
}

void mistral(Draft& draft) {
  llama(draft);
  if (draft.windows.empty()) read_uniform_window(draft);
}

void internlm2(Draft& draft) {
  read_dense(draft, true);
  const bool bias = flag_or(draft.config, "bias", false);
  set_attention_bias(draft, bias, bias);
  read_tied_embeddings(draft, false);
}

void qwen2(Draft& draft) {
  read_dense(draft, true);
  set_attention_bias(draft, true, false);
  read_tied_embeddings(draft, false);
  read_qwen_windows(draft);
}

void qwen3(Draft& draft) {
  read_dense(draft, true);
  const bool bias = flag_or(draft.config, "attention_bias", false);
  set_attention_bias(draft, bias, bias);
  draft.attention.query_key_norm = true;
  read_tied_embeddings(draft, false);
  read_qwen_windows(draft);
}

void olmo2(Draft& draft) {
  llama(draft);
  draft.attention.query_key_norm = true;
  draft.attention.query_key_norm_all_heads = true;
}

void glm4(Draft& draft) {
  read_dense(draft, true);
  set_attention_bias(draft, flag_or(draft.config, "attention_bias", false), false);
  read_tied_embeddings(draft, false);
  draft.norms = 4;
}

void gemma(Draft& draft) {
  read_dense(draft, true);
  if (draft.config.find_set("hidden_act") == nullptr &&
      draft.config.find_set("hidden_activation") == nullptr) {
    draft.dense.activation = Activation::kGeglu;
  }
  const bool bias = flag_or(draft.config, "attention_bias", false);
  set_attention_bias(draft, bias, bias);
  read_tied_embeddings(draft, true);
}

/// Every `pattern`-th layer is full, the others have a window.
void every_nth_full(Draft& draft, std::int64_t pattern) {
  const std::int64_t window = required_count(draft.config, {"sliding_window"});
  for (std::int64_t i = 0; i < draft.layers; ++i)
    draft.windows.push_back((i + 1) % pattern == 0 ? 0 : window);
}

void gemma2(Draft& draft) {
  gemma(draft);
  draft.norms = 4;
  if (!read_layer_types(draft)) every_nth_full(draft, 2);
}

void gemma3(Draft& draft) {
  constexpr std::int64_t kUsualPattern = 6;
  gemma(draft);
  draft.norms = 4;
  draft.attention.query_key_norm = true;
  if (!read_layer_types(draft))
    every_nth_full(draft, count_or(draft.config, {"sliding_window_pattern"}, kUsualPattern));
}

/// Attention and MLP side by side behind one LayerNorm; biases everywhere, also on the head.
void phi(Draft& draft) {
  read_dense(draft, false);
  set_attention_bias(draft, true, true);
  draft.dense.bias = true;
  draft.attention.query_key_norm = flag_or(draft.config, "qk_layernorm", false);
  draft.norms = 1;
  layer_norm(draft, true);
  draft.out.model.head_bias = true;
  read_tied_embeddings(draft, false);
}

void phi3(Draft& draft) {
  read_dense(draft, true);
  read_tied_embeddings(draft, false);
  read_uniform_window(draft);
}

void cohere(Draft& draft) {
  read_dense(draft, true);
  const bool bias = flag_or(draft.config, "attention_bias", false);
  set_attention_bias(draft, bias, bias);
  draft.norms = 1;
  layer_norm(draft, false);
  if (flag_or(draft.config, "use_qk_norm", false)) {
    draft.attention.query_key_norm = true;
    draft.attention.query_key_norm_all_heads = true;
  }
  read_tied_embeddings(draft, true);
  read_layer_types(draft);
}

void starcoder2(Draft& draft) {
  read_dense(draft, false);
  const bool bias = flag_or(draft.config, "use_bias", true);
  set_attention_bias(draft, bias, bias);
  draft.dense.bias = bias;
  layer_norm(draft, true);
  read_tied_embeddings(draft, true);
  read_uniform_window(draft);
}

void stablelm(Draft& draft) {
  read_dense(draft, true);
  set_attention_bias(draft, flag_or(draft.config, "use_qkv_bias", false), false);
  if (flag_or(draft.config, "use_parallel_residual", false)) draft.norms = 1;
  layer_norm(draft, true);
  read_tied_embeddings(draft, false);
}

/// Nemotron-4: squared ReLU without gate, LayerNorm (as 1 + weight, with bias).
void nemotron(Draft& draft) {
  read_dense(draft, false);
  if (draft.config.find_set("hidden_act") == nullptr) draft.dense.activation = Activation::kSquaredRelu;
  const bool bias = flag_or(draft.config, "attention_bias", false);
  set_attention_bias(draft, bias, bias);
  draft.dense.bias = flag_or(draft.config, "mlp_bias", false);
  layer_norm(draft, true);
  read_tied_embeddings(draft, false);
}

}  // namespace

const std::vector<Family>& llama_like_families() {
  static const std::vector<Family> families = {
      {"llama", "LlamaForCausalLM", llama},
      {"mistral", "MistralForCausalLM", mistral},
      {"ministral", "MinistralForCausalLM", mistral},
      {"granite", "GraniteForCausalLM", llama},
      {"seed_oss", "SeedOssForCausalLM", llama},
      {"smollm3", "SmolLM3ForCausalLM", llama},
      {"internlm2", "InternLM2ForCausalLM", internlm2},
      {"qwen2", "Qwen2ForCausalLM", qwen2},
      {"qwen2_vl", "", qwen2},
      {"qwen2_vl_text", "", qwen2},
      {"qwen2_5_vl", "", qwen2},
      {"qwen2_5_vl_text", "", qwen2},
      {"qwen3", "Qwen3ForCausalLM", qwen3},
      {"qwen3_vl_text", "", qwen3},
      {"olmo2", "Olmo2ForCausalLM", olmo2},
      {"olmo3", "Olmo3ForCausalLM", olmo2},
      {"glm4", "Glm4ForCausalLM", glm4},
      {"gemma", "GemmaForCausalLM", gemma},
      {"gemma2", "Gemma2ForCausalLM", gemma2},
      {"gemma3_text", "Gemma3ForCausalLM", gemma3},
      {"phi", "PhiForCausalLM", phi},
      {"phi3", "Phi3ForCausalLM", phi3},
      {"cohere", "CohereForCausalLM", cohere},
      {"cohere2", "Cohere2ForCausalLM", cohere},
      {"starcoder2", "Starcoder2ForCausalLM", starcoder2},
      {"stablelm", "StableLmForCausalLM", stablelm},
      {"nemotron", "NemotronForCausalLM", nemotron},
  };
  return families;
}

}  // namespace sextant::model
