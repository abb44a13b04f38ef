// What a workload may ask for and Sextant does not model, each with the reason a user needs.
#include <fmt/format.h>

#include "backends/megatron_model.h"

namespace sextant::backends {
namespace {

void refuse_model_type(const ResolvedKeys& keys) {
  const std::string type = keys.text("model_type", "gpt");
  if (type == "gpt" || type == "GPT" || type == "deepseek_v4") return;
  if (type == "mamba" || type == "hybrid") {
    keys.refuse(
        "model_type",
        fmt::format("\"{}\": state-space and linear-attention hybrids (Mamba, GDN, KDA) are not supported; "
                    "Sextant projects attention models (gpt, deepseek_v4)",
                    type));
  }
  if (type.starts_with("kimi_k3")) {
    keys.refuse(
        "model_type",
        fmt::format("\"{}\": most of its layers are linear attention (KDA), which is not supported", type));
  }
  keys.refuse("model_type",
              fmt::format("\"{}\" is not supported; Sextant projects decoder-only language models "
                          "(gpt, deepseek_v4)",
                          type));
}

void refuse_hybrid_layers(const ResolvedKeys& keys) {
  for (const std::string_view key : {"hybrid_layer_pattern", "hybrid_override_pattern"}) {
    if (keys.is_set(key)) {
      keys.refuse(key, fmt::format("\"{}\" mixes Mamba with attention layers, which is not supported",
                                   keys.text(key, "")));
    }
  }
  if (keys.boolean("is_hybrid_model", false)) {
    keys.refuse("is_hybrid_model", "hybrids of state-space and attention layers are not supported");
  }
  if (keys.is_set("experimental_attention_variant")) {
    keys.refuse(
        "experimental_attention_variant",
        fmt::format("\"{}\" attention is not supported (grouped-query, multi-latent and DeepSeek-V4's "
                    "compressed attention are)",
                    keys.text("experimental_attention_variant", "")));
  }
  if (keys.is_set("linear_attention_freq")) {
    keys.refuse("linear_attention_freq", "linear-attention layers are not supported");
  }
  for (const std::string& layer : keys.texts("lfm_layer_types")) {
    if (layer != "full_attention") {
      keys.refuse("lfm_layer_types",
                  fmt::format("\"{}\" layers (LFM) are not supported, only attention layers are", layer));
    }
  }
  for (const std::string_view key :
       {"heterogeneous_layers_config_path", "heterogeneous_layers_config_encoded_json"}) {
    if (keys.is_set(key))
      keys.refuse(key, "layers of different shapes (heterogeneous models) are not supported");
  }
}

void refuse_training_kinds(const ResolvedKeys& keys) {
  if (const config::Node* lora = keys.find("lora"); lora != nullptr && lora->is_mapping()) {
    const config::Node* enabled = lora->find_set("enabled");
    if (enabled != nullptr && config::as_boolean(*enabled, true)) {
      throw base::UserError(
          enabled->position, enabled->path,
          "low-rank adaptation (LoRA) is not supported: frozen weights have no gradients and no "
          "optimizer state, which Sextant does not model; full fine-tuning and pre-training are "
          "supported");
    }
  }
  if (keys.boolean("perform_rl_step", false)) {
    keys.refuse("perform_rl_step",
                "reinforcement learning alternates training with generation, which is not supported");
  }
  if (keys.is_set("decoder_pipeline_manual_split_list")) {
    keys.refuse("decoder_pipeline_manual_split_list",
                "is not supported; say the same with pipeline_model_parallel_layout");
  }
  if (keys.integer("num_seq_splits", 1) > 1) {
    keys.refuse("num_seq_splits", "splitting sequences between pipeline steps is not supported; set it to 1");
  }
  if (keys.integer("decoder_num_layers", 0) > 0) {
    keys.refuse("decoder_num_layers", "encoder-decoder models are not supported");
  }
}

}  // namespace

void refuse_unsupported_keys(const ResolvedKeys& keys) {
  refuse_model_type(keys);
  refuse_hybrid_layers(keys);
  refuse_training_kinds(keys);
}

}  // namespace sextant::backends
