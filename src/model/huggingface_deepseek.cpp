// DeepSeek's models and those built like them (Kimi K2, Moonlight, GLM-5).
//
// DeepSeek-V4 says which layers compress how far in one of two forms (sglang issue 34092, vLLM issue 42741):
// a list `compress_ratios` with one entry a layer, which may go on for multi-token-prediction layers; or
// `layer_types` with a table `compress_rates` from type to ratio, where a type without an entry does not
// compress. A file with neither is refused: read as "no layer compresses" it would silently lose the
// indexers.
#include <fmt/format.h>

#include "base/error.h"
#include "model/huggingface_families.h"

namespace sextant::model {
namespace {

using config::Node;

void read_deepseek_experts(Draft& draft) {
  draft.dense.activation = read_activation(draft, true);
  draft.dense.ffn = count_or(draft.config, {"intermediate_size"}, 0);
  read_experts(draft, {"moe_intermediate_size"});
  draft.experts.shared_expert_ffn = size_or(draft.config, "n_shared_experts", 0) * draft.experts.expert_ffn;
}

/// DeepSeekMoE 16B: experts as in V2, plain attention.
void deepseek(Draft& draft) {
  read_dimensions(draft);
  read_heads(draft);
  read_deepseek_experts(draft);
  read_first_dense_layers(draft);
  read_tied_embeddings(draft, false);
}

void deepseek_v2(Draft& draft) {
  read_dimensions(draft);
  read_latent_attention(draft);
  read_deepseek_experts(draft);
  read_first_dense_layers(draft);
  read_tied_embeddings(draft, false);
  read_mtp(draft);
}

/// V2 plus a balancing bias for each expert.
void deepseek_v3(Draft& draft) {
  deepseek_v2(draft);
  draft.experts.router_bias = true;
}

void read_indexer(Draft& draft) {
  draft.attention.indexer = {.heads = required_count(draft.config, {"index_n_heads"}),
                             .head_dim = required_count(draft.config, {"index_head_dim"}),
                             .top_k = required_count(draft.config, {"index_topk"})};
}

/// V3 plus the lightning indexer on every layer.
void deepseek_v32(Draft& draft) {
  deepseek_v3(draft);
  read_indexer(draft);
}

void ratios_from_list(Draft& draft, const Node& list) {
  const auto entries = static_cast<std::int64_t>(config::require_sequence(list).items.size());
  if (entries < draft.layers) {
    throw base::UserError(
        list.position, list.path,
        fmt::format("has {} entries for {} layers; give one for each", entries, draft.layers));
  }
  for (std::int64_t i = 0; i < entries; ++i) {
    const Node& item = list.items[static_cast<std::size_t>(i)];
    const std::int64_t ratio = config::as_integer(item);
    if (ratio < 0)
      throw base::UserError(item.position, item.path, "a compression ratio cannot be negative; 0 is none");
    if (i < draft.layers) {
      draft.ratios.push_back(ratio);
    } else if (!draft.mtp_ratio) {
      draft.mtp_ratio = ratio;
    }
  }
  if (entries > draft.layers) {
    draft.out.warnings.push_back(
        fmt::format("{} has {} entries for {} layers; the first {} are the layers', what follows is the "
                    "multi-token-prediction layers'",
                    list.path, entries, draft.layers, draft.layers));
  }
}

void ratios_from_types(Draft& draft, const Node& types, const Node& rates) {
  config::require_mapping(rates);
  const auto entries = static_cast<std::int64_t>(config::require_sequence(types).items.size());
  if (entries < draft.layers) {
    throw base::UserError(
        types.position, types.path,
        fmt::format("has {} entries for {} layers; give one for each", entries, draft.layers));
  }
  for (std::int64_t i = 0; i < draft.layers; ++i) {
    const std::string type = config::as_text(types.items[static_cast<std::size_t>(i)]);
    draft.ratios.push_back(size_or(rates, type, 0));
  }
}

void read_compress_ratios(Draft& draft) {
  const Node* list = draft.config.find_set("compress_ratios");
  const Node* types = draft.config.find_set("layer_types");
  const Node* rates = draft.config.find_set("compress_rates");
  if (list != nullptr) return ratios_from_list(draft, *list);
  if (types != nullptr && rates != nullptr) return ratios_from_types(draft, *types, *rates);
  throw base::UserError(
      draft.config.position, draft.config.path,
      "which layers compress how far is not said; give compress_ratios (one number a layer), or "
      "layer_types with a table compress_rates");
}

void deepseek_v4(Draft& draft) {
  read_dimensions(draft);
  Attention& attention = draft.attention;
  attention.kind = AttentionKind::kCompressed;
  attention.heads = required_count(draft.config, {"num_attention_heads"});
  attention.kv_heads = count_or(draft.config, {"num_key_value_heads"}, 1);
  attention.head_dim = required_count(draft.config, {"head_dim"});
  attention.value_head_dim = attention.head_dim;
  attention.query_latent_rank = required_count(draft.config, {"q_lora_rank"});
  attention.rotary_head_dim = count_or(draft.config, {"qk_rope_head_dim"}, 0);
  attention.window_tokens = required_count(draft.config, {"sliding_window"});
  attention.output_groups = required_count(draft.config, {"o_groups"});
  attention.output_latent_rank = required_count(draft.config, {"o_lora_rank"});
  attention.sinks = true;
  read_compress_ratios(draft);
  read_indexer(draft);
  draft.out.model.hyper_connections.streams = size_or(draft.config, "hc_mult", 0);

  read_deepseek_experts(draft);
  draft.experts.router_bias = true;
  if (!read_mlp_layer_types(draft)) {
    const std::int64_t hashed = size_or(draft.config, "num_hash_layers", 0);
    for (std::int64_t i = 0; i < draft.layers; ++i) draft.hashed.push_back(i < hashed);
  }
  read_tied_embeddings(draft, false);
  read_mtp(draft);
}

}  // namespace

const std::vector<Family>& deepseek_families() {
  static const std::vector<Family> families = {
      {"deepseek", "DeepseekForCausalLM", deepseek},
      {"deepseek_v2", "DeepseekV2ForCausalLM", deepseek_v2},
      {"deepseek_v3", "DeepseekV3ForCausalLM", deepseek_v3},
      {"kimi_k2", "", deepseek_v3},
      {"deepseek_v32", "DeepseekV32ForCausalLM", deepseek_v32},
      {"glm_moe_dsa", "GlmMoeDsaForCausalLM", deepseek_v32},
      {"deepseek_v4", "DeepseekV4ForCausalLM", deepseek_v4},
  };
  return families;
}

}  // namespace sextant::model
