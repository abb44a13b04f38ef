// Importer of Hugging Face `config.json`.
#pragma once

#include <string>
#include <vector>

#include "config/node.h"
#include "model/model.h"

namespace sextant::model {

struct ImportedModel {
  Model model;
  std::vector<std::string> warnings;  ///< what was assumed, each a sentence
};

/// Builds a model from a parsed config.json: Llama, Mistral, Mixtral, Qwen2/2.5/3 (dense and MoE),
/// DeepSeek-V2/V3/V4, GPT-OSS, GPT-2/NeoX, Phi, Gemma shapes; nested `text_config`; null fields mean absent;
/// missing num_key_value_heads means num_attention_heads; explicit head_dim wins over hidden/heads; old and
/// new forms of rope scaling and of per-layer patterns (layer_types, compress_ratios, mlp_layer_types,
/// first_k_dense_replace, decoder_sparse_step). Throws base::UserError for unsupported families (named) and
/// for contradictions.
ImportedModel import_huggingface(const config::Node& document);

}  // namespace sextant::model
