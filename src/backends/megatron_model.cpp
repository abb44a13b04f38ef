#include "backends/megatron_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "backends/layer_pattern.h"
#include "base/text.h"
#include "model/catalogue.h"

namespace sextant::backends {
namespace {

constexpr std::int64_t kMostLayers = 10'000;
constexpr std::int64_t kLargestDimension = std::int64_t{1} << 32;

std::int64_t dimension(const ResolvedKeys& keys, std::string_view key, std::int64_t fallback) {
  const std::int64_t value = keys.integer(key, fallback);
  if (value < 1 || value > kLargestDimension) {
    keys.refuse(key, fmt::format("expected a whole number of at least 1, found {}", value));
  }
  return value;
}

std::int64_t required_dimension(const ResolvedKeys& keys, std::string_view key) {
  if (!keys.is_set(key)) keys.refuse(key, "is missing: without it there is no model");
  return dimension(keys, key, 0);
}

/// Zero or more; unset is zero.
std::int64_t count(const ResolvedKeys& keys, std::string_view key, std::int64_t fallback = 0) {
  const std::int64_t value = keys.integer(key, fallback);
  if (value < 0 || value > kLargestDimension) {
    keys.refuse(key, fmt::format("expected a whole number of at least 0, found {}", value));
  }
  return value;
}

/// A key that is either a number, a list or an expression; evaluated.
std::optional<LayerPattern> pattern(const ResolvedKeys& keys, std::string_view key) {
  const config::Node* node = keys.find(key);
  if (node == nullptr) return std::nullopt;
  if (node->kind == config::Node::Kind::kSequence) return LayerPattern(keys.integers(key));
  const std::string text = config::as_text(*node);
  LayerPattern result;
  std::string error;
  if (!evaluate_layer_pattern(text, result, error)) {
    keys.refuse(key, fmt::format("\"{}\" is no layer pattern: {}; write a number or a list such as "
                                 "\"([0]*3+[1]*58)\"",
                                 text, error));
  }
  return result;
}

std::vector<std::int64_t> require_length(const ResolvedKeys& keys, std::string_view key,
                                         std::vector<std::int64_t> items, std::int64_t layers) {
  if (static_cast<std::int64_t>(items.size()) != layers) {
    keys.refuse(key, fmt::format("has {} entries, but the model has {} layers; give one entry a layer",
                                 items.size(), layers));
  }
  return items;
}

/// Which layers are mixtures of experts: moe_layer_freq N means layers 0, N, 2N, …
std::vector<bool> expert_layers(const ResolvedKeys& keys, std::int64_t layers) {
  std::vector<bool> result(static_cast<std::size_t>(layers), false);
  if (count(keys, "num_experts") == 0) return result;
  const LayerPattern frequency = pattern(keys, "moe_layer_freq").value_or(LayerPattern{std::int64_t{1}});
  if (const auto* every = std::get_if<std::int64_t>(&frequency)) {
    if (*every < 1) keys.refuse("moe_layer_freq", "expected a number of at least 1 or a list");
    for (std::int64_t i = 0; i < layers; i += *every) result[static_cast<std::size_t>(i)] = true;
    return result;
  }
  const std::vector<std::int64_t> items =
      require_length(keys, "moe_layer_freq", std::get<std::vector<std::int64_t>>(frequency), layers);
  for (std::size_t i = 0; i < items.size(); ++i) result[i] = items[i] != 0;
  return result;
}

/// Window of each layer in tokens, 0 = full attention.
std::vector<std::int64_t> windows(const ResolvedKeys& keys, std::int64_t layers,
                                  const KeyConventions& conventions) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(layers), 0);
  if (keys.is_set("window_size")) {
    const std::vector<std::int64_t> size = keys.integers("window_size");
    if (size.size() != 2) keys.refuse("window_size", "expected two numbers, left and right, such as 128,0");
    if (size[0] < 1) return result;
    const std::optional<LayerPattern> skip = pattern(keys, "window_attn_skip_freq");
    std::vector<std::int64_t> chosen(static_cast<std::size_t>(layers), 1);
    if (skip && std::holds_alternative<std::int64_t>(*skip)) {
      const std::int64_t every = std::get<std::int64_t>(*skip);
      if (every < 1) keys.refuse("window_attn_skip_freq", "expected a number of at least 1 or a list");
      // Every n-th layer attends to everything (is_layer_window_attention counts layers from 1).
      for (std::int64_t i = 0; i < layers; ++i)
        chosen[static_cast<std::size_t>(i)] = (i + 1) % every != 0 ? 1 : 0;
    } else if (skip) {
      chosen =
          require_length(keys, "window_attn_skip_freq", std::get<std::vector<std::int64_t>>(*skip), layers);
    }
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = chosen[i] != 0 ? size[0] : 0;
  } else if (conventions.primus && keys.boolean("use_sink_attention", false)) {
    const std::int64_t window = count(keys, "sink_sliding_window");
    const bool even_only = keys.boolean("sink_window_even_layers_only", true);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = even_only && i % 2 == 1 ? 0 : window;
  }
  return result;
}

bool is_deepseek_v4(const ResolvedKeys& keys, const KeyConventions& conventions) {
  return conventions.primus && keys.text("model_type", "gpt") == "deepseek_v4";
}

model::Attention grouped_query_attention(const ResolvedKeys& keys, std::int64_t hidden,
                                         const KeyConventions& conventions) {
  model::Attention attention;
  attention.heads = required_dimension(keys, "num_attention_heads");
  attention.kv_heads = attention.heads;
  if (keys.boolean("group_query_attention", false)) {
    // argparse's default is one group; null, as Primus's presets have it, means one a head.
    const bool explicit_null = keys.mapping().find("num_query_groups") != nullptr;
    attention.kv_heads = dimension(keys, "num_query_groups", explicit_null ? attention.heads : 1);
  }
  if (!keys.is_set("kv_channels") && hidden % attention.heads != 0) {
    keys.refuse("num_attention_heads", fmt::format("{} heads do not divide hidden_size {}; set kv_channels",
                                                   attention.heads, hidden));
  }
  attention.head_dim = dimension(keys, "kv_channels", hidden / attention.heads);
  attention.value_head_dim = attention.head_dim;
  attention.query_key_norm = keys.boolean("qk_layernorm", false);
  const bool biases = keys.boolean("add_bias_linear", true);
  attention.qkv_bias = biases || keys.boolean("add_qkv_bias", false);
  attention.output_bias = biases;
  attention.output_gate = keys.boolean("attention_output_gate", false);
  attention.sinks = keys.text("softmax_type", "vanilla") == "learnable" ||
                    (conventions.primus && keys.boolean("use_sink_attention", false));
  return attention;
}

void make_multi_latent(const ResolvedKeys& keys, model::Attention& attention) {
  attention.kind = model::AttentionKind::kMultiLatent;
  attention.kv_heads = attention.heads;
  attention.query_latent_rank = count(keys, "q_lora_rank");
  attention.kv_latent_rank = dimension(keys, "kv_lora_rank", 32);
  attention.head_dim = dimension(keys, "qk_head_dim", 128);
  attention.rotary_head_dim = count(keys, "qk_pos_emb_head_dim", 64);
  attention.value_head_dim = dimension(keys, "v_head_dim", 128);
  attention.query_key_norm = false;  // the norms sit on the latents
}

void make_compressed(const ResolvedKeys& keys, model::Attention& attention) {
  attention.kind = model::AttentionKind::kCompressed;
  attention.kv_heads = 1;
  attention.query_latent_rank = count(keys, "q_lora_rank");
  attention.rotary_head_dim = count(keys, "qk_pos_emb_head_dim", 64);
  attention.window_tokens = count(keys, "attn_sliding_window");
  attention.sinks = keys.boolean("attn_sink", false);
  attention.output_groups = dimension(keys, "o_groups", 8);
  attention.output_latent_rank = count(keys, "o_lora_rank");
}

/// One layer's attention with compression `ratio`; ratio 4 selects with the lightning indexer.
model::Attention compressed(const ResolvedKeys& keys, model::Attention attention, std::int64_t ratio) {
  constexpr std::int64_t kIndexedRatio = 4;
  attention.compress_ratio = ratio;
  if (ratio == kIndexedRatio) {
    attention.indexer.heads = dimension(keys, "index_n_heads", 64);
    attention.indexer.head_dim = dimension(keys, "index_head_dim", 128);
    attention.indexer.top_k = count(keys, "index_topk");
  }
  return attention;
}

model::Activation activation(const ResolvedKeys& keys) {
  if (keys.boolean("swiglu", false)) return model::Activation::kSwiglu;
  if (keys.boolean("quick_geglu", false)) return model::Activation::kGeglu;
  if (keys.boolean("squared_relu", false)) return model::Activation::kSquaredRelu;
  return model::Activation::kGelu;
}

std::int64_t feed_forward_width(const ResolvedKeys& keys, std::int64_t hidden) {
  if (keys.is_set("ffn_hidden_size")) return dimension(keys, "ffn_hidden_size", 0);
  // validate_args: 4·hidden, or two thirds of it rounded down to a multiple of 64 when gated by --swiglu.
  if (keys.boolean("swiglu", false)) {
    return static_cast<std::int64_t>(static_cast<double>(4 * hidden * 2) / 3.0 / 64.0) * 64;
  }
  return 4 * hidden;
}

model::Mlp dense_mlp(const ResolvedKeys& keys, std::int64_t hidden) {
  model::Mlp mlp;
  mlp.activation = activation(keys);
  mlp.bias = keys.boolean("add_bias_linear", true);
  mlp.ffn = feed_forward_width(keys, hidden);
  return mlp;
}

model::Mlp expert_mlp(const ResolvedKeys& keys, const model::Mlp& dense) {
  model::Mlp mlp = dense;
  mlp.kind = model::MlpKind::kMixtureOfExperts;
  mlp.ffn = 0;
  mlp.experts = dimension(keys, "num_experts", 0);
  mlp.experts_per_token = dimension(keys, "moe_router_topk", 2);
  if (mlp.experts_per_token > mlp.experts) {
    keys.refuse("moe_router_topk",
                fmt::format("{} experts a token, but there are only {}", mlp.experts_per_token, mlp.experts));
  }
  mlp.expert_ffn = dimension(keys, "moe_ffn_hidden_size", dense.ffn);
  mlp.shared_expert_ffn = count(keys, "moe_shared_expert_intermediate_size");
  mlp.shared_expert_gate = mlp.shared_expert_ffn > 0 && keys.boolean("moe_shared_expert_gate", false);
  mlp.router_bias = keys.boolean("moe_router_enable_expert_bias", false);
  mlp.router_linear_bias = mlp.bias;  // megatron/core/transformer/moe/router.py: with add_bias_linear
  mlp.routing_groups = count(keys, "moe_router_num_groups");
  mlp.routing_groups_per_token = count(keys, "moe_router_group_topk");
  mlp.latent = count(keys, "moe_latent_size");
  return mlp;
}

/// Distinct layer classes in order of first appearance.
class ClassTable {
 public:
  explicit ClassTable(model::Model& model) : model_(model) {}

  int index_of(const std::string& name, const model::Attention& attention, const model::Mlp& mlp) {
    const auto [entry, is_new] = index_.try_emplace(name, static_cast<int>(model_.classes.size()));
    if (is_new) model_.classes.push_back({name, attention, mlp, 2});
    return entry->second;
  }

 private:
  model::Model& model_;
  std::map<std::string, int> index_;
};

std::string class_name(bool experts, std::int64_t window, bool compressed_attention, std::int64_t ratio,
                       bool hash) {
  std::string name = experts ? "moe" : "dense";
  if (hash) name += "-hash";
  if (compressed_attention) return name + (ratio == 0 ? "-window" : fmt::format("-compressed-{}", ratio));
  return window > 0 ? name + "-window" : name;
}

/// compress_ratios: one entry a decoder layer, and one for each prediction depth after them.
std::vector<std::int64_t> compress_ratios(const ResolvedKeys& keys, std::int64_t layers, int depths) {
  std::vector<std::int64_t> ratios = keys.integers("compress_ratios");
  if (ratios.empty()) keys.refuse("compress_ratios", "is missing: DeepSeek-V4 needs one ratio a layer");
  const auto wanted = static_cast<std::size_t>(layers + depths);
  if (ratios.size() < static_cast<std::size_t>(layers)) {
    keys.refuse("compress_ratios",
                fmt::format("has {} entries, but the model has {} layers", ratios.size(), layers));
  }
  ratios.resize(wanted, 0);
  if (std::ranges::any_of(ratios, [](std::int64_t ratio) { return ratio < 0; })) {
    keys.refuse("compress_ratios", "expected ratios of at least 0");
  }
  return ratios;
}

void build_layers(const ResolvedKeys& keys, const KeyConventions& conventions, std::int64_t layers,
                  model::Model& model) {
  const bool v4 = is_deepseek_v4(keys, conventions);
  model::Attention attention = grouped_query_attention(keys, model.hidden, conventions);
  if (v4) {
    make_compressed(keys, attention);
  } else if (keys.boolean("multi_latent_attention", false)) {
    make_multi_latent(keys, attention);
  }
  const std::vector<bool> has_experts = expert_layers(keys, layers);
  const std::vector<std::int64_t> window =
      v4 ? std::vector<std::int64_t>(has_experts.size(), 0) : windows(keys, layers, conventions);
  const std::vector<std::int64_t> ratios =
      v4 ? compress_ratios(keys, layers, model.mtp.depths) : std::vector<std::int64_t>(has_experts.size(), 0);
  const std::int64_t hash_layers = v4 ? count(keys, "num_hash_layers") : 0;
  const model::Mlp dense = dense_mlp(keys, model.hidden);
  const bool any_experts = std::ranges::find(has_experts, true) != has_experts.end();
  const model::Mlp experts = any_experts ? expert_mlp(keys, dense) : model::Mlp{};

  ClassTable classes(model);
  const auto class_of = [&](std::size_t layer, std::int64_t ratio, bool hash) {
    model::Attention own = v4 ? compressed(keys, attention, ratio) : attention;
    if (!v4) own.window_tokens = window[layer];
    model::Mlp mlp = has_experts[layer] ? experts : dense;
    mlp.hash_routing = hash && has_experts[layer];
    return classes.index_of(class_name(has_experts[layer], own.window_tokens, v4, ratio, mlp.hash_routing),
                            own, mlp);
  };
  for (std::size_t i = 0; i < has_experts.size(); ++i) {
    model.class_of_layer.push_back(class_of(i, ratios[i], static_cast<std::int64_t>(i) < hash_layers));
  }
  // A prediction depth repeats the last decoder layer (get_gpt_mtp_block_spec); in DeepSeek-V4 with its own
  // ratio.
  if (model.mtp.depths > 0) {
    const std::size_t last = has_experts.size() - 1;
    model.mtp.layer_class = v4 ? class_of(last, ratios[last + 1], false) : model.class_of_layer[last];
  }
}

std::int64_t null_tokenizer_vocabulary(std::int64_t vocab_size, const KeyConventions& conventions) {
  // Megatron-core counted an end-of-document token on top until 0.17 (null_tokenizer.py).
  constexpr int kLastWithExtraToken = 17;
  return !conventions.primus && conventions.generation <= kLastWithExtraToken ? vocab_size + 1 : vocab_size;
}

std::int64_t vocabulary(const ResolvedKeys& keys, const KeyConventions& conventions,
                        std::vector<std::string>& warnings) {
  const std::string tokenizer_type = keys.text("tokenizer_type", "");
  if (keys.is_set("vocab_size")) {
    const std::int64_t size = dimension(keys, "vocab_size", 0);
    return tokenizer_type == "NullTokenizer" ? null_tokenizer_vocabulary(size, conventions) : size;
  }
  if (keys.is_set("padded_vocab_size")) return dimension(keys, "padded_vocab_size", 0);
  for (const std::string_view key : {"tokenizer_model", "tokenizer_type"}) {
    const std::string tokenizer = keys.text(key, "");
    if (tokenizer.empty()) continue;
    const std::optional<std::int64_t> size = model::vocabulary_of_tokenizer(tokenizer);
    if (!size) continue;
    std::string warning =
        fmt::format("vocab_size is not set: the {} tokens of tokenizer {} are counted", *size, tokenizer);
    if (conventions.primus && keys.boolean("mock_data", false)) {
      // primus/backends/megatron/patches/args/mock_data_patches.py
      warning +=
          "; with mock_data Primus itself trains on a vocabulary of 131072, set vocab_size to project that";
    }
    warnings.push_back(warning);
    return *size;
  }
  keys.refuse(
      keys.is_set("tokenizer_model") ? "tokenizer_model" : "vocab_size",
      fmt::format("the vocabulary is unknown: vocab_size is not set and tokenizer {} is not in Sextant's "
                  "list; set vocab_size",
                  keys.text("tokenizer_model", tokenizer_type.empty() ? "(none)" : tokenizer_type)));
}

model::Positions positions(const ResolvedKeys& keys) {
  const std::string type = keys.boolean("use_rotary_position_embeddings", false)
                               ? "rope"
                               : keys.text("position_embedding_type", "learned_absolute");
  if (type == "rope" || type == "yarn" || type == "mrope") return model::Positions::kRotary;
  if (type == "learned_absolute") return model::Positions::kLearned;
  if (type == "none") return model::Positions::kNone;
  keys.refuse("position_embedding_type",
              fmt::format("\"{}\" is not supported; rope, yarn, mrope, learned_absolute and none are", type));
}

double dropout(const ResolvedKeys& keys, std::string_view key) {
  const double value = keys.number(key, 0.1);
  if (!(value >= 0.0 && value < 1.0)) keys.refuse(key, fmt::format("expected 0 up to 1, found {}", value));
  return value;
}

}  // namespace

model::Model model_from_keys(const ResolvedKeys& keys, const std::string& name,
                             const KeyConventions& conventions, std::vector<std::string>& warnings) {
  model::Model model;
  model.name = name;
  model.hidden = required_dimension(keys, "hidden_size");
  const std::string_view layers_key = keys.is_set("num_layers") ? "num_layers" : "encoder_num_layers";
  if (!keys.is_set(layers_key)) keys.refuse("num_layers", "is missing: without it there is no model");
  const std::int64_t layers = dimension(keys, layers_key, 0);
  if (layers > kMostLayers)
    keys.refuse(layers_key, fmt::format("{} layers are more than {}", layers, kMostLayers));
  model.vocabulary = vocabulary(keys, conventions, warnings);
  model.maximum_positions = count(keys, "max_position_embeddings");
  const std::string norm = keys.text("normalization", "LayerNorm");
  if (norm != "LayerNorm" && norm != "RMSNorm") {
    keys.refuse("normalization", fmt::format("\"{}\" is unknown; LayerNorm or RMSNorm", norm));
  }
  model.norm = norm == "RMSNorm" ? model::Norm::kRmsNorm : model::Norm::kLayerNorm;
  model.positions = positions(keys);
  model.tied_embeddings = !keys.boolean("untie_embeddings_and_output_weights", false);
  model.hidden_dropout = dropout(keys, "hidden_dropout");
  model.attention_dropout = dropout(keys, "attention_dropout");
  const std::int64_t depths = count(keys, "mtp_num_layers");
  if (depths > 100)
    keys.refuse("mtp_num_layers", fmt::format("{} prediction depths are more than 100", depths));
  model.mtp.depths = static_cast<int>(depths);
  if (is_deepseek_v4(keys, conventions)) {
    const std::int64_t streams = count(keys, "hc_mult", 1);
    model.hyper_connections.streams = streams > 1 ? streams : 0;
  }
  build_layers(keys, conventions, layers, model);
  try {
    model::require_sane(model);
  } catch (const base::UserError& error) {
    if (!error.position().file.empty()) throw;
    throw base::UserError(keys.mapping().position, error.key_path(), error.message());
  }
  return model;
}

}  // namespace sextant::backends
