// The models Sextant knows by name: data/models/*.yaml, each with its source.
//
// A catalogue file maps names to models; a user's model YAML is one model. The form of a model:
//
//   like: llama-3.1-8b        # optional: start from this catalogue entry; keys below are laid over its
//   aliases: [...]            # catalogue only: names printed elsewhere
//   source: ...               # catalogue only: where the figures are from
//   hidden: 4096              # width of the residual stream
//   layers: 32
//   vocabulary: 128256        # unpadded
//   maximum_positions: 131072 # needed only for `positions: learned`
//   norm: rms                 # or layer; norm_bias: false for LayerNorms without one
//   norms: 2                  # norms of a layer
//   positions: rotary         # learned, none
//   tied_embeddings: false    # also final_norm, embedding_norm, head_bias, hidden_dropout, attention_dropout
//   hyper_connections: 4      # residual streams
//   attention: {heads: 32, kv_heads: 8, head_dim: 128, ...}  # keys: fields of model::Attention;
//                             # kind: grouped_query, latent, compressed; head_dim defaults to hidden/heads
//   mlp: {ffn: 14336}         # or {experts, experts_per_token, expert_ffn, ...}: fields of model::Mlp;
//                             # activation: swiglu, geglu, gelu, relu, squared_relu
//   mtp: {depths: 1}          # layer_class: NAME; the last layer's by default
//
// Where layers differ, `classes` names them and `pattern` says which is where (model/layer_pattern.h). A
// class's `attention` is laid over the model's, its `mlp` takes the model's place:
//
//   classes:
//     dense: {mlp: {ffn: 18432}}
//     moe: {}
//   pattern: dense*3 moe*58
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/huggingface.h"

namespace sextant::model {

/// Names in the catalogue, sorted ("deepseek-v3", "llama-3.1-8b", …).
std::vector<std::string> catalogue_names();

/// The model called `name`: case, spaces, '_' and '-' do not matter, and aliases ("Llama3.1 8B",
/// "meta-llama/Llama-3.1-8B") are known. nullopt when unknown.
std::optional<ImportedModel> find_in_catalogue(std::string_view name);

/// Where the figures of `name` are from. nullopt when unknown.
std::optional<std::string> catalogue_source(std::string_view name);

/// Why a model that tables name is not in the catalogue ("a hybrid of Mamba and attention"), from
/// data/models/unsupported.yaml. nullopt for all others.
std::optional<std::string> unsupported_reason(std::string_view name);

/// A model from a folder with config.json, a config.json file, a Sextant model YAML, or a catalogue name.
/// Throws base::UserError with the nearest names otherwise.
ImportedModel load_model(const std::string& file_folder_or_name);

/// Vocabulary of a tokenizer by its Hugging Face repository or path's last component
/// ("mistralai/Mixtral-8x22B-v0.1" → 32,000), from data/tokenizers.yaml. nullopt when unknown: callers must
/// not guess.
std::optional<std::int64_t> vocabulary_of_tokenizer(std::string_view tokenizer);

}  // namespace sextant::model
