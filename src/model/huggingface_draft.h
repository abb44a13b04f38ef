// What the families of config.json have in common: reads that follow Hugging Face's habits, and a draft of a
// model that a family fills and `compose` turns into layer classes.
//
// Habits: a null value means absent; counts are whole numbers from 1, never text; one figure has several
// names; a list says per layer what else a rule would.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"
#include "model/huggingface.h"
#include "model/model.h"

namespace sextant::model {

struct Draft {
  const config::Node& config;    ///< the part that describes the language model
  const config::Node& document;  ///< the whole file: the same, or what surrounds `text_config`
  ImportedModel out = {};
  std::int64_t layers = 0;

  Attention attention = {};
  Mlp dense = {};
  Mlp experts = {};
  int norms = 2;

  // Per layer; empty where all layers are alike.
  std::vector<std::int64_t> windows = {};  ///< tokens, 0 = full
  std::vector<bool> sparse = {};           ///< has experts
  std::vector<bool> hashed = {};           ///< experts by token id
  std::vector<std::int64_t> ratios = {};   ///< DeepSeek-V4's compress_ratio
  std::optional<std::int64_t> mtp_ratio = {};
  std::int64_t kv_heads_full = 0;    ///< key-value heads of layers without window; 0 = as the others
  std::int64_t kv_heads_window = 0;  ///< of layers with one
};

/// The first of `keys` that is set, or nullptr.
const config::Node* first_set(const config::Node& mapping, std::initializer_list<std::string_view> keys);

/// A whole number from 1; text such as "8" is refused.
std::int64_t as_count(const config::Node& node);
/// The count under the first of `keys` that is set. Throws base::UserError naming the first key when none is.
std::int64_t required_count(const config::Node& mapping, std::initializer_list<std::string_view> keys);
std::int64_t count_or(const config::Node& mapping, std::initializer_list<std::string_view> keys,
                      std::int64_t fallback);
/// Like count_or, but 0 is allowed.
std::int64_t size_or(const config::Node& mapping, std::string_view key, std::int64_t fallback);
bool flag_or(const config::Node& mapping, std::string_view key, bool fallback);

/// hidden, layers, vocabulary, positions; the usual names and GPT-2's.
void read_dimensions(Draft& draft);
/// heads, key-value heads (absent or null: as many as heads) and head_dim (absent or null: hidden / heads).
void read_heads(Draft& draft);
/// Query latent, key-value latent and head widths of DeepSeek's latent attention.
void read_latent_attention(Draft& draft);
/// Whether embedding and head share weights: the language model's own word, then the file's, then the
/// family's habit.
void read_tied_embeddings(Draft& draft, bool habit);
/// `gated`: the family's MLP has a gate whatever the activation is called.
Activation read_activation(Draft& draft, bool gated);

/// Biases on the query, key and value projections and on the output projection.
void set_attention_bias(Draft& draft, bool qkv, bool output);

/// Windows by `layer_types`, when the file has them: true. Throws for linear-attention layers.
bool read_layer_types(Draft& draft);
/// The same window on all layers, when `sliding_window` is set.
void read_uniform_window(Draft& draft);
/// Qwen's rule: windows only if use_sliding_window, then by layer_types or from layer max_window_layers on.
void read_qwen_windows(Draft& draft);
/// Experts, experts per token and their width under any of their names.
void read_experts(Draft& draft, std::initializer_list<std::string_view> width_keys);
/// Which layers have experts, by `mlp_layer_types`, when the file has them: true.
bool read_mlp_layer_types(Draft& draft);
/// DeepSeek's rule: first_k_dense_replace dense layers, then every moe_layer_freq-th has experts (or a list
/// of 0 and 1).
void read_first_dense_layers(Draft& draft);
/// Depths of multi-token prediction under `key`.
void read_mtp(Draft& draft, std::string_view key = "num_nextn_predict_layers");

/// Turns the draft into classes and layers of draft.out.model.
void compose(Draft& draft);

}  // namespace sextant::model
