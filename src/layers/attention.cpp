// Multi-head, multi-query and grouped-query attention, and the core that all kinds share.
//
// Saved tensors follow Transformer Engine's layers (docs/design/memory.md, section "Activations"): norm and
// projection are one module that keeps the residual input and the normalised output; fused attention keeps
// queries, keys, values, its output and a log-sum-exp; unfused attention keeps the probabilities instead of
// the latter.

#include "layers/attention.h"

#include <algorithm>

namespace sextant::layers {

using cost::Collective;
using cost::CollectiveKind;
using cost::GroupKind;
using cost::Part;
using parallel::RecomputeModule;

double causal_pairs(double sequence, double window) {
  if (window <= 0 || window >= sequence) return sequence * sequence / 2;
  return window * sequence - window * (window - 1) / 2;
}

double compressed_pairs(double sequence, double ratio, double top_k) {
  const double entries = static_cast<double>(static_cast<std::int64_t>(sequence / ratio));
  const double shown = top_k > 0 ? std::min(entries, top_k) : entries;
  // A query sees e entries at `ratio` positions each until `shown` is reached at position ratio·shown − 1.
  return ratio * shown * (shown - 1) / 2 + shown * (sequence - ratio * shown + 1);
}

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
void write_context_exchange(Writer& w, const CoreShape& c, bool before) {
  const RankShape& s = w.shape();
  if (s.cp == 1) return;
  const double key_value =
      2 * s.tokens * (c.shared_latent ? c.head_dim : c.kv_heads * (c.head_dim + c.value_head_dim));
  if (c.shared_latent || (c.window > 0 && !w.layout().context_all_to_all)) {
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

}  // namespace

void write_core_attention(Writer& w, const CoreShape& c) {
  const RankShape& s = w.shape();
  const bool fused = w.software().attention == AttentionKernel::kFused;
  const bool dropout = w.model().attention_dropout > 0;
  write_context_exchange(w, c, true);

  cost::AttentionCore core;
  core.batch = s.micro_batch;
  core.heads = c.heads;
  core.kv_heads = c.kv_heads;
  core.query_tokens = s.context_sequence;
  core.key_tokens = s.sequence;
  core.pairs_per_head = c.pairs / s.cp;
  core.head_dim = c.head_dim;
  core.value_head_dim = c.value_head_dim;
  core.fused = fused;
  core.dropout = dropout;
  if (s.cp > 1 && w.layout().context_all_to_all && !c.shared_latent) {
    core.heads /= s.cp;
    core.kv_heads = std::max(1.0, core.kv_heads / s.cp);
    core.query_tokens = s.sequence;
    core.pairs_per_head = c.pairs;
  }
  w.attention("attention core", core);
  write_context_exchange(w, c, false);

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
  const double heads = static_cast<double>(a.heads) / s.tp;
  const double kv_heads =
      std::max(1.0, static_cast<double>(a.kv_heads) / s.tp);  // replicated when fewer than TP
  const double mixed = d * (heads * (a.output_gate ? 2 : 1) + 2 * kv_heads);

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
    w.parameters().replicated += (w.model().norm == model::Norm::kLayerNorm ? 4 : 2) * d;
    w.save("query and key before their norm", 2 * s.tokens * d * (heads + 2 * kv_heads));
  }
  if (w.model().positions == model::Positions::kRotary) {
    const double bytes = 4 * s.tokens * d * (heads + kv_heads);
    w.element_wise("rotary embedding", Part::kAttentionCore, bytes, bytes);
  }
  if (a.sinks) w.parameters().dense += heads;
  write_core_attention(w, {.heads = heads,
                           .kv_heads = kv_heads,
                           .head_dim = d,
                           .value_head_dim = d,
                           .pairs = causal_pairs(s.sequence, static_cast<double>(a.window_tokens)),
                           .window = static_cast<double>(a.window_tokens)});
  if (a.output_gate) {
    const double bytes = 2 * s.tokens * d * heads;
    w.element_wise("output gate", Part::kAttentionCore, 3 * bytes, 5 * bytes);
    w.save("gated attention output", bytes / 2 * s.operand_bytes);
  }
  w.row_parallel({.name = "attention output projection",
                  .part = Part::kAttentionProjection,
                  .tokens = s.tokens,
                  .in = heads * d,
                  .out = s.hidden});
  if (a.output_bias) w.parameters().replicated += s.hidden;
}

}  // namespace

void write_attention(Writer& w, const model::Attention& attention) {
  switch (attention.kind) {
    case model::AttentionKind::kGroupedQuery:
      return write_grouped_query_attention(w, attention);
    case model::AttentionKind::kMultiLatent:
      return write_latent_attention(w, attention);
    case model::AttentionKind::kCompressed:
      return write_compressed_attention(w, attention);
  }
}

}  // namespace sextant::layers
