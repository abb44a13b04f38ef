// DeepSeek-V2/V3 latent attention as Megatron-LM trains it (core/transformer/multi_latent_attention.py):
// queries, keys and values are expanded from their latents before the core, so the core is plain multi-head
// attention with keys of head_dim + rotary_head_dim and values of value_head_dim. Down-projections are
// duplicated over tensor ranks and run on the local part of the sequence; up-projections are split by heads.

#include "layers/attention.h"

namespace sextant::layers {

using cost::CollectiveKind;
using cost::GroupKind;
using cost::Part;
using parallel::RecomputeModule;

void write_latent_attention(Writer& w, const model::Attention& a) {
  const RankShape& s = w.shape();
  const double heads = static_cast<double>(a.heads) / s.tp;
  const double key_dim = static_cast<double>(a.head_dim + a.rotary_head_dim);
  const double value_dim = static_cast<double>(a.value_head_dim);
  const double query_rank = static_cast<double>(a.query_latent_rank);
  const double kv_rank = static_cast<double>(a.kv_latent_rank);
  const double rotary = static_cast<double>(a.rotary_head_dim);
  const Part part = Part::kAttentionProjection;
  if (a.qkv_bias) w.parameters().replicated += query_rank + kv_rank + rotary;

  write_norm_before(w, "attention norm", "normalised attention input", true, 0, true);
  if (query_rank > 0) {
    w.linear({.name = "query down projection",
              .part = part,
              .tokens = s.local_tokens,
              .in = s.hidden,
              .out = query_rank,
              .kept = Linear::Kept::kReplicated});
    w.norm("query latent norm", s.local_tokens, query_rank);
    w.save("query latent", 2 * s.local_tokens * query_rank);
    w.save("normalised query latent", s.operand_bytes * s.local_tokens * query_rank);
    w.column_parallel({.name = "query up projection",
                       .part = part,
                       .tokens = s.tokens,
                       .in = query_rank,
                       .out = heads * key_dim});
  } else {
    w.column_parallel({.name = "query projection",
                       .part = part,
                       .tokens = s.tokens,
                       .in = s.hidden,
                       .out = heads * key_dim});
  }
  w.linear({.name = "key-value down projection",
            .part = part,
            .tokens = s.local_tokens,
            .in = s.hidden,
            .out = kv_rank + rotary,
            .kept = Linear::Kept::kReplicated});
  w.norm("key-value latent norm", s.local_tokens, kv_rank);
  w.save("key-value latent", 2 * s.local_tokens * (kv_rank + rotary));
  w.save("normalised key-value latent", s.operand_bytes * s.local_tokens * kv_rank);
  if (s.sequence_parallel) {
    const double bytes = 2 * s.tokens * rotary;
    w.exchange("gather rotary keys", Part::kTensorParallel,
               {CollectiveKind::kAllGather, GroupKind::kTensor, bytes},
               {CollectiveKind::kReduceScatter, GroupKind::kTensor, bytes});
  }
  w.column_parallel({.name = "key-value up projection",
                     .part = part,
                     .tokens = s.tokens,
                     .in = kv_rank,
                     .out = heads * (static_cast<double>(a.head_dim) + value_dim)});

  // Keys are assembled from two parts, so queries, keys and values are fresh contiguous copies.
  const double assembled = 2 * s.tokens * heads * (2 * key_dim + value_dim);
  w.element_wise("rotary embedding and assembly", Part::kAttentionCore, 2 * assembled, 2 * assembled);
  w.save("query, key", 2 * s.tokens * heads * 2 * key_dim, RecomputeModule::kMlaUpProjection);
  w.save("value", 2 * s.tokens * heads * value_dim, RecomputeModule::kMlaUpProjection);

  if (a.indexer.heads > 0) write_indexer(w, a);
  write_core_attention(w, a,
                       {.heads = heads, .kv_heads = heads, .head_dim = key_dim, .value_head_dim = value_dim});
  w.row_parallel({.name = "attention output projection",
                  .part = part,
                  .tokens = s.tokens,
                  .in = heads * value_dim,
                  .out = s.hidden});
}

}  // namespace sextant::layers
