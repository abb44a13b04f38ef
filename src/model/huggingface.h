// Importer of Hugging Face `config.json`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/node.h"
#include "model/model.h"

namespace sextant::model {

struct ImportedModel {
  Model model;
  std::vector<std::string> warnings;          ///< what was assumed, each a sentence
  std::vector<std::int64_t> end_tokens = {};  ///< ids that end a text: `eos_token_id`, a number or a list
  std::string file = {};                      ///< that it was read from; empty: the catalogue
};

/// How rotary frequencies are stretched for long texts, from `rope_scaling` (its type under `rope_type` or,
/// older, `type`) or `rope_parameters`.
struct RopeScaling {
  std::string type;  ///< "linear", "dynamic", "yarn", "longrope", "llama3"
  double factor = 1;
  double low_freq_factor = 0;                   ///< llama3 only
  double high_freq_factor = 0;                  ///< llama3 only
  std::int64_t original_maximum_positions = 0;  ///< 0 = unstated
};

/// nullopt for frequencies as they are (absent, null, "default"). Throws base::UserError for a scaling
/// without a type, with two different ones, of an unknown type, or without a field that its type needs.
std::optional<RopeScaling> read_rope_scaling(const config::Node& document);

/// Builds a model from a parsed config.json: Llama, Mistral, Qwen2/2.5/3, Gemma, Phi, OLMo, Cohere,
/// Nemotron-4 and models of their shape; Mixtral, Qwen-MoE, GPT-OSS, Llama 4, GLM-4.5, MiniMax-M2;
/// DeepSeek-V2/V3/V3.2/V4, Kimi K2, GLM-5; GPT-2, NeoX, GPT-J, OPT, BLOOM, Falcon, MPT. A nested
/// `text_config` is read instead of what surrounds it; null fields mean absent; missing num_key_value_heads
/// means num_attention_heads; explicit head_dim wins over hidden/heads; old and new forms of rope scaling and
/// of per-layer patterns (layer_types, compress_ratios, mlp_layer_types, first_k_dense_replace,
/// decoder_sparse_step). Throws base::UserError for unsupported families (named: Mamba and linear attention,
/// vision, diffusion, encoders) and for contradictions.
ImportedModel import_huggingface(const config::Node& document);

}  // namespace sextant::model
