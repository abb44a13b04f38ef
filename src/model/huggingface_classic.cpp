// GPT-2 and the families between it and Llama: LayerNorm, MLPs without gate, biases, learned, rotary or ALiBi
// positions. Source of each rule: huggingface/transformers src/transformers/models/<family>/; MPT:
// mosaicml/llm-foundry.
#include <fmt/format.h>

#include "base/error.h"
#include "model/huggingface_families.h"

namespace sextant::model {
namespace {

void read_plain(Draft& draft, std::int64_t ffn) {
  draft.dense.activation = read_activation(draft, false);
  draft.dense.ffn = ffn;
  draft.out.model.norm = Norm::kLayerNorm;
}

void all_biases(Draft& draft, bool bias) {
  draft.attention.qkv_bias = bias;
  draft.attention.output_bias = bias;
  draft.dense.bias = bias;
}

std::int64_t four_times_hidden(const Draft& draft) { return 4 * draft.out.model.hidden; }

void gpt2(Draft& draft) {
  read_dimensions(draft);
  read_heads(draft);
  read_plain(draft, count_or(draft.config, {"n_inner"}, four_times_hidden(draft)));
  all_biases(draft, true);
  draft.out.model.positions = Positions::kLearned;
  draft.out.model.maximum_positions =
      required_count(draft.config, {"n_positions", "max_position_embeddings", "n_ctx"});
  read_tied_embeddings(draft, true);
}

void gpt_neox(Draft& draft) {
  read_dimensions(draft);
  read_heads(draft);
  read_plain(draft, required_count(draft.config, {"intermediate_size"}));
  all_biases(draft, flag_or(draft.config, "attention_bias", true));
  draft.dense.bias = true;
  read_tied_embeddings(draft, false);
}

void gptj(Draft& draft) {
  read_dimensions(draft);
  read_heads(draft);
  read_plain(draft, count_or(draft.config, {"n_inner"}, four_times_hidden(draft)));
  draft.dense.bias = true;
  draft.norms = 1;
  draft.out.model.head_bias = true;
  read_tied_embeddings(draft, false);
}

void opt(Draft& draft) {
  constexpr std::int64_t kPaddingPositions = 2;  // OPTLearnedPositionalEmbedding.offset
  read_dimensions(draft);
  read_heads(draft);
  read_plain(draft, required_count(draft.config, {"ffn_dim"}));
  if (draft.config.find_set("activation_function") == nullptr) draft.dense.activation = Activation::kRelu;
  Model& model = draft.out.model;
  const config::Node* projected = draft.config.find_set("word_embed_proj_dim");
  if (projected != nullptr && as_count(*projected) != model.hidden) {
    throw base::UserError(projected->position, projected->path,
                          fmt::format("embeddings of width {} under a hidden size of {} are not supported",
                                      as_count(*projected), model.hidden));
  }
  all_biases(draft, flag_or(draft.config, "enable_bias", true));
  model.positions = Positions::kLearned;
  model.maximum_positions = required_count(draft.config, {"max_position_embeddings"}) + kPaddingPositions;
  model.final_norm = flag_or(draft.config, "do_layer_norm_before", true);
  read_tied_embeddings(draft, true);
}

void bloom(Draft& draft) {
  read_dimensions(draft);
  read_heads(draft);
  read_plain(draft, four_times_hidden(draft));
  all_biases(draft, true);
  draft.out.model.positions = Positions::kNone;
  draft.out.model.embedding_norm = true;
  read_tied_embeddings(draft, true);
}

void falcon(Draft& draft) {
  read_dimensions(draft);
  read_heads(draft);
  read_plain(draft, count_or(draft.config, {"ffn_hidden_size"}, four_times_hidden(draft)));
  const bool newer = flag_or(draft.config, "new_decoder_architecture", false);
  if (!newer) {
    draft.attention.kv_heads = flag_or(draft.config, "multi_query", true) ? 1 : draft.attention.heads;
  }
  const bool side_by_side = newer || flag_or(draft.config, "parallel_attn", true);
  constexpr std::int64_t kNormsOfNewer = 2;  // ln_attn and ln_mlp
  const std::int64_t parallel_norms =
      count_or(draft.config, {"num_ln_in_parallel_attn"}, newer ? kNormsOfNewer : 1);
  draft.norms = side_by_side && parallel_norms == 1 ? 1 : 2;
  all_biases(draft, flag_or(draft.config, "bias", false));
  if (flag_or(draft.config, "alibi", false)) draft.out.model.positions = Positions::kNone;
  read_tied_embeddings(draft, true);
}

void mpt(Draft& draft) {
  read_dimensions(draft);
  read_heads(draft);
  constexpr std::int64_t kUsualExpansion = 4;
  read_plain(draft, count_or(draft.config, {"expansion_ratio"}, kUsualExpansion) * draft.out.model.hidden);
  const bool biases = !flag_or(draft.config, "no_bias", false);
  all_biases(draft, biases);
  draft.out.model.norm_bias = biases;
  bool alibi = false;
  if (const config::Node* attention = draft.config.find_set("attn_config")) {
    alibi = flag_or(*attention, "alibi", false);
    const bool one =
        config::text_or(*attention, "attn_type", "multihead_attention") == "multiquery_attention";
    draft.attention.kv_heads = count_or(*attention, {"kv_n_heads"}, one ? 1 : draft.attention.heads);
    draft.attention.query_key_norm = flag_or(*attention, "qk_ln", false);
    draft.attention.query_key_norm_all_heads = draft.attention.query_key_norm;
  }
  const bool learned = !alibi && flag_or(draft.config, "learned_pos_emb", true);
  draft.out.model.positions = learned ? Positions::kLearned : Positions::kNone;
  read_tied_embeddings(draft, true);
}

}  // namespace

const std::vector<Family>& classic_families() {
  static const std::vector<Family> families = {
      {"gpt2", "GPT2LMHeadModel", gpt2},    {"gpt_neox", "GPTNeoXForCausalLM", gpt_neox},
      {"gptj", "GPTJForCausalLM", gptj},    {"opt", "OPTForCausalLM", opt},
      {"bloom", "BloomForCausalLM", bloom}, {"falcon", "FalconForCausalLM", falcon},
      {"mpt", "MPTForCausalLM", mpt},
  };
  return families;
}

}  // namespace sextant::model
