// Multi-head, multi-query and grouped-query attention, and the core that all kinds share.
//
// Saved tensors follow Transformer Engine's layers (docs/design/memory.md, section "Activations"): norm and
// projection are one module that keeps the residual input and the normalised output; fused attention keeps
// queries, keys, values, its output and a log-sum-exp; unfused attention keeps the probabilities instead of
// the latter.

#include "layers/attention.h"

#include <algorithm>
#include <cmath>

#include "model/parameters.h"
#include "model/parts.h"

namespace sextant::layers {

using cost::Collective;
using cost::CollectiveKind;
using cost::GroupKind;
using cost::Part;
using parallel::RecomputeModule;

void write_norm_before(Writer& w, const char* norm_name, const char* output_name, bool quantised,
                       std::uint32_t output_freed_by, bool is_layer_input) {
  const RankShape& s = w.shape();
  const double stream = s.stream_bytes();
  const double input = stream * (w.software().fp32_residual ? 2 : 1);
  if (is_layer_input) {
    w.save_input("layer input", input);
  } else {
    w.save("mlp residual input", input);
  }
  w.norm(norm_name, s.local_tokens, s.hidden);
  w.save(output_name, quantised ? stream / 2 * s.operand_bytes : stream,
         output_freed_by | RecomputeModule::kLayerNorm);
}

namespace {

/// Keys and values of the other context-parallel ranks: round the ring, gathered at once (windows, which
/// Transformer Engine's ring does not support), or traded for heads.
void write_context_exchange(Writer& w, const model::Attention& a, const CoreShape& c, bool before) {
  const RankShape& s = w.shape();
  if (s.cp == 1) return;
  const double key_value =
      2 * s.tokens * (c.shared_latent ? c.head_dim : c.kv_heads * (c.head_dim + c.value_head_dim));
  if (c.shared_latent || (a.window_tokens > 0 && !w.layout().context_all_to_all)) {
    if (!before) return;
    w.exchange("gather keys and values", Part::kContextParallel,
               {CollectiveKind::kAllGather, GroupKind::kContext, key_value * s.cp},
               {CollectiveKind::kReduceScatter, GroupKind::kContext, key_value * s.cp});
    // The gathered keys are gathered again for the backward core.
    w.backward_exchange("gather keys and values again", Part::kContextParallel,
                        {CollectiveKind::kAllGather, GroupKind::kContext, key_value * s.cp});
    return;
  }
  if (w.layout().context_all_to_all) {
    const double query = 2 * s.tokens * c.heads * c.head_dim;
    const double output = 2 * s.tokens * c.heads * c.value_head_dim;
    const Collective traded{CollectiveKind::kAllToAll, GroupKind::kContext,
                            before ? query + key_value : output};
    w.exchange(before ? "trade sequence for heads" : "trade heads for sequence", Part::kContextParallel,
               traded, traded);
    return;
  }
  if (!before) return;
  const double hops = s.cp - 1;
  w.exchange("ring exchange of keys and values", Part::kContextParallel,
             {CollectiveKind::kSendReceive, GroupKind::kContext, key_value, hops},
             // Keys and values go round again, their gradients with them.
             {CollectiveKind::kSendReceive, GroupKind::kContext, 2 * key_value, hops});
}

/// Megatron-LM's fused scale-mask-softmax kernel: a block holds four attention rows of one warp each, so
/// batches times heads must divide by four; sequences to 16,384 (megatron/fused_kernels,
/// is_kernel_available).
bool softmax_kernel_applies(double batch_times_heads, double sequence) {
  return std::fmod(batch_times_heads, 4.0) == 0 && std::fmod(sequence, 4.0) == 0 && sequence > 16 &&
         sequence <= 16384;
}

}  // namespace

void write_core_attention(Writer& w, const model::Attention& a, const CoreShape& c) {
  const RankShape& s = w.shape();
  const double pairs = s.sequence * model::attention_pairs_per_token(a, s.sequence);
  const bool fused = w.software().attention == AttentionKernel::kFused;
  const bool dropout = w.model().attention_dropout > 0;
  write_context_exchange(w, a, c, true);

  cost::AttentionCore core;
  core.batch = s.micro_batch;
  core.heads = c.heads;
  core.kv_heads = c.kv_heads;
  core.query_tokens = s.context_sequence;
  core.key_tokens = s.sequence;
  core.pairs_per_head = pairs / s.cp;
  core.head_dim = c.head_dim;
  core.value_head_dim = c.value_head_dim;
  core.fused = fused;
  core.fp8 = fused && w.software().fp8_attention && s.operand_bytes < 2;
  core.dropout = dropout;
  core.fused_softmax = fused || softmax_kernel_applies(s.micro_batch * c.heads, s.sequence);
  core.context_ranks = s.cp;
  if (s.cp > 1 && w.layout().context_all_to_all && !c.shared_latent) {
    core.heads /= s.cp;
    core.context_ranks = 1;
    core.kv_heads = std::max(1.0, core.kv_heads / s.cp);
    core.query_tokens = s.sequence;
    core.pairs_per_head = pairs;
  }
  w.attention("attention core", core);
  write_context_exchange(w, a, c, false);

  const double rows = s.micro_batch * c.heads * s.context_sequence;
  const double output = s.tokens * c.heads * c.value_head_dim;
  if (fused) {
    // The output serves the core's backward in bf16; a quantised output projection keeps its own copy.
    w.save("attention output", output * (2 + (s.operand_bytes < 2 ? s.operand_bytes : 0)));
    w.save("log-sum-exp", 4 * rows, RecomputeModule::kCoreAttention);
    w.working_set(
        2 * s.tokens *
        (c.heads * (c.head_dim + 2 * c.value_head_dim) + c.kv_heads * (c.head_dim + c.value_head_dim)));
  } else {
    // Softmax, its dropped copy and a byte mask; without dropout the softmax alone.
    const double score = rows * s.context_sequence;
    w.save("attention output", output * s.operand_bytes);
    w.save("attention probabilities", (dropout ? 5 : 2) * score, RecomputeModule::kCoreAttention);
    w.working_set(4 * score);
  }
}

namespace {

void write_grouped_query_attention(Writer& w, const model::Attention& a) {
  const RankShape& s = w.shape();
  const double d = static_cast<double>(a.head_dim);
  const double value_dim = static_cast<double>(a.value_head_dim);
  const double heads = static_cast<double>(a.heads) / s.tp;
  const double kv_heads = std::max(1.0, static_cast<double>(a.kv_heads) / s.tp);  // replicated below one
  const double queries = d * heads * (a.output_gate ? 2 : 1);
  const double keys_and_values = (d + value_dim) * kv_heads;
  const double mixed = queries + keys_and_values;

  write_norm_before(w, "attention norm", "normalised attention input", true, 0, true);
  w.column_parallel({.name = "qkv projection",
                     .part = Part::kAttentionProjection,
                     .tokens = s.tokens,
                     .in = s.hidden,
                     .out = mixed});
  if (a.qkv_bias) w.parameters().dense += mixed;
  w.save("query, key, value", 2 * s.tokens * mixed);
  if (a.query_key_norm) {
    const double width = d * (heads + kv_heads);
    w.element_wise("query and key norm", Part::kNorm, 4 * s.tokens * width, 6 * s.tokens * width);
    const std::int64_t weights =
        a.query_key_norm_all_heads ? (a.heads + a.kv_heads) * a.head_dim : 2 * a.head_dim;
    w.parameters().replicated += static_cast<double>(model::norm_elements(w.model(), weights));
    // Queries and keys are views of the mixed tensor, so all of it stays beside their normalised copies.
    w.save("query, key, value before the norm", 2 * s.tokens * mixed);
  }
  if (w.model().positions == model::Positions::kRotary) {
    const double bytes = 4 * s.tokens * d * (heads + kv_heads);
    w.element_wise("rotary embedding", Part::kAttentionCore, bytes, bytes);
  }
  if (a.sinks) w.parameters().replicated += static_cast<double>(a.heads);
  write_core_attention(w, a,
                       {.heads = heads, .kv_heads = kv_heads, .head_dim = d, .value_head_dim = value_dim});
  if (a.output_gate) {
    const double bytes = 2 * s.tokens * value_dim * heads;
    w.element_wise("output gate", Part::kAttentionCore, 3 * bytes, 5 * bytes);
    w.save("gated attention output", bytes / 2 * s.operand_bytes);
  }
  w.row_parallel({.name = "attention output projection",
                  .part = Part::kAttentionProjection,
                  .tokens = s.tokens,
                  .in = heads * value_dim,
                  .out = s.hidden});
}

}  // namespace

void write_attention(Writer& w, const model::Attention& attention) {
  switch (attention.kind) {
    case model::AttentionKind::kGroupedQuery:
      write_grouped_query_attention(w, attention);
      break;
    case model::AttentionKind::kMultiLatent:
      write_latent_attention(w, attention);
      break;
    case model::AttentionKind::kCompressed:
      write_compressed_attention(w, attention);
      break;
  }
  if (attention.output_bias) w.parameters().replicated += w.shape().hidden;
}

}  // namespace sextant::layers
