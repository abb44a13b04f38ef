#include "model/huggingface_draft.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace sextant::model {
namespace {

using config::Node;

/// No figure of a model comes near; products of two stay far from overflow.
constexpr std::int64_t kLargestFigure = 1'000'000'000;

[[noreturn]] void refuse(const Node& node, const std::string& fault) {
  throw base::UserError(node.position, node.path, fault);
}

std::int64_t whole_number(const Node& node, std::int64_t lowest) {
  if (node.kind != Node::Kind::kScalar || node.quoted) {
    refuse(node, fmt::format("is no number{}; write a whole number from {} without quotes",
                             node.quoted ? fmt::format(" but the text \"{}\"", node.text) : "", lowest));
  }
  const std::int64_t value = config::as_integer(node);
  if (value > kLargestFigure) refuse(node, fmt::format("{} is larger than any model's; correct it", value));
  if (value < lowest)
    refuse(node, fmt::format("{} is impossible; give a whole number from {}", value, lowest));
  return value;
}

}  // namespace

const Node* first_set(const Node& mapping, std::initializer_list<std::string_view> keys) {
  for (const auto key : keys) {
    if (const Node* found = mapping.find_set(key)) return found;
  }
  return nullptr;
}

std::int64_t as_count(const Node& node) { return whole_number(node, 1); }

std::int64_t required_count(const Node& mapping, std::initializer_list<std::string_view> keys) {
  const Node* found = first_set(mapping, keys);
  return found != nullptr ? as_count(*found) : as_count(config::require(mapping, *keys.begin()));
}

std::int64_t count_or(const Node& mapping, std::initializer_list<std::string_view> keys,
                      std::int64_t fallback) {
  const Node* found = first_set(mapping, keys);
  return found != nullptr ? as_count(*found) : fallback;
}

std::int64_t size_or(const Node& mapping, std::string_view key, std::int64_t fallback) {
  const Node* found = mapping.find_set(key);
  return found != nullptr ? whole_number(*found, 0) : fallback;
}

bool flag_or(const Node& mapping, std::string_view key, bool fallback) {
  return config::boolean_or(mapping, key, fallback);
}

void read_dimensions(Draft& draft) {
  constexpr std::int64_t kMostLayers = 100'000;
  Model& model = draft.out.model;
  model.hidden = required_count(draft.config, {"hidden_size", "n_embd", "n_embed", "d_model"});
  draft.layers = required_count(draft.config, {"num_hidden_layers", "n_layer", "n_layers"});
  if (draft.layers > kMostLayers) {
    refuse(*first_set(draft.config, {"num_hidden_layers", "n_layer", "n_layers"}),
           fmt::format("{} layers; give at most {}", draft.layers, kMostLayers));
  }
  model.vocabulary = required_count(draft.config, {"vocab_size"});
  model.maximum_positions = count_or(
      draft.config, {"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"}, 0);
}

void read_heads(Draft& draft) {
  Attention& attention = draft.attention;
  const std::int64_t hidden = draft.out.model.hidden;
  attention.heads = required_count(draft.config, {"num_attention_heads", "n_head", "n_heads"});
  attention.kv_heads = count_or(draft.config, {"num_key_value_heads", "num_kv_heads"}, attention.heads);
  if (const Node* head_dim = draft.config.find_set("head_dim")) {
    attention.head_dim = as_count(*head_dim);
  } else if (hidden % attention.heads == 0) {
    attention.head_dim = hidden / attention.heads;
  } else {
    const Node& heads = *first_set(draft.config, {"num_attention_heads", "n_head", "n_heads"});
    refuse(heads,
           fmt::format("head_dim is not given, and hidden size {} is no multiple of {} attention heads; give "
                       "head_dim or correct one of them",
                       hidden, attention.heads));
  }
  attention.value_head_dim = attention.head_dim;
  draft.kv_heads_full = count_or(draft.config, {"num_global_key_value_heads"}, 0);
  draft.kv_heads_window = count_or(draft.config, {"swa_num_key_value_heads"}, 0);
}

void read_latent_attention(Draft& draft) {
  Attention& attention = draft.attention;
  attention.kind = AttentionKind::kMultiLatent;
  attention.heads = required_count(draft.config, {"num_attention_heads"});
  attention.kv_heads = attention.heads;
  attention.query_latent_rank = count_or(draft.config, {"q_lora_rank"}, 0);
  attention.kv_latent_rank = required_count(draft.config, {"kv_lora_rank"});
  attention.head_dim = required_count(draft.config, {"qk_nope_head_dim"});
  attention.rotary_head_dim = required_count(draft.config, {"qk_rope_head_dim"});
  attention.value_head_dim = required_count(draft.config, {"v_head_dim"});
  const bool bias = flag_or(draft.config, "attention_bias", false);
  attention.qkv_bias = bias;
  attention.output_bias = bias;
}

void read_tied_embeddings(Draft& draft, bool habit) {
  const bool outer = flag_or(draft.document, "tie_word_embeddings", habit);
  draft.out.model.tied_embeddings = flag_or(draft.config, "tie_word_embeddings", outer);
}

Activation read_activation(Draft& draft, bool gated) {
  const Node* named = first_set(draft.config, {"hidden_act", "hidden_activation", "activation_function",
                                               "activation", "mlp_hidden_act"});
  const std::string name = named == nullptr ? "" : base::lower_case(config::as_text(*named));
  const bool gelu = name.find("gelu") != std::string::npos || name.find("geglu") != std::string::npos;
  if (gated) {
    if (gelu) return Activation::kGeglu;
    if (named != nullptr && name != "silu" && name != "swish" && name != "swiglu") {
      draft.out.warnings.push_back(fmt::format("{} is '{}'; counted as SwiGLU", named->path, name));
    }
    return Activation::kSwiglu;
  }
  if (name == "relu2" || name == "squared_relu" || name == "relu_squared") return Activation::kSquaredRelu;
  if (name == "relu") return Activation::kRelu;
  if (named != nullptr && !gelu) {
    draft.out.warnings.push_back(fmt::format("{} is '{}'; counted as GELU", named->path, name));
  }
  return Activation::kGelu;
}

void read_experts(Draft& draft, std::initializer_list<std::string_view> width_keys) {
  const Node* count = nullptr;
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"}) {
    const Node* found = draft.config.find_set(key);
    if (found == nullptr) continue;
    if (count != nullptr && as_count(*count) != as_count(*found)) {
      refuse(*found, fmt::format("{} experts, but {} says {}; make them agree", as_count(*found), count->path,
                                 as_count(*count)));
    }
    count = found;
  }
  if (count == nullptr) count = &config::require(draft.config, "num_experts");
  Mlp& experts = draft.experts;
  experts.kind = MlpKind::kMixtureOfExperts;
  experts.experts = as_count(*count);
  experts.experts_per_token = required_count(
      draft.config, {"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk"});
  experts.expert_ffn = required_count(draft.config, width_keys);
  experts.activation = draft.dense.activation;
  if (experts.experts_per_token > experts.experts) {
    refuse(*first_set(draft.config,
                      {"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk"}),
           fmt::format("a token goes to {} experts, but there are only {}", experts.experts_per_token,
                       experts.experts));
  }
  experts.routing_groups = size_or(draft.config, "n_group", 0);
  experts.routing_groups_per_token = size_or(draft.config, "topk_group", 0);
  if (experts.routing_groups <= 1) experts.routing_groups = experts.routing_groups_per_token = 0;
}

void read_mtp(Draft& draft, std::string_view key) {
  constexpr std::int64_t kMostDepths = 1000;
  const std::int64_t depths = size_or(draft.config, key, 0);
  if (depths > kMostDepths) refuse(*draft.config.find_set(key), "more prediction layers than any model has");
  draft.out.model.mtp.depths = static_cast<int>(depths);
}

void set_attention_bias(Draft& draft, bool qkv, bool output) {
  draft.attention.qkv_bias = qkv;
  draft.attention.output_bias = output;
}

}  // namespace sextant::model
