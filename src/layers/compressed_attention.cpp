// DeepSeek-V4's attention (arXiv 2606.19348; Primus core/transformer/deepseek_v4_attention.py).
//
// One vector of head_dim a token is key and value of every head. A query attends to a sliding window of these
// and to compressed entries, one for `compress_ratio` tokens; with ratio 4 the windows of entries overlap
// (projections twice as wide) and an indexer picks the `top_k` best. Heads leave through a grouped low-rank
// projection: a block-diagonal matrix, then a dense one. Everything that is not per head is duplicated over
// tensor ranks and runs on the local part of the sequence.

#include "layers/attention.h"
#include "model/parameters.h"

namespace sextant::layers {

using cost::CollectiveKind;
using cost::GroupKind;
using cost::Part;
using parallel::RecomputeModule;

namespace {

constexpr Part kPart = Part::kAttentionProjection;

void replicated_linear(Writer& w, const char* name, double in, double out) {
  w.linear({.name = name,
            .part = kPart,
            .tokens = w.shape().local_tokens,
            .in = in,
            .out = out,
            .kept = Linear::Kept::kReplicated});
}

void write_output(Writer& w, const model::Attention& a, double heads, double dim) {
  const RankShape& s = w.shape();
  if (a.output_groups <= 0) {
    w.row_parallel({.name = "attention output projection",
                    .part = kPart,
                    .tokens = s.tokens,
                    .in = heads * dim,
                    .out = s.hidden});
    return;
  }
  const double groups = static_cast<double>(a.output_groups) / s.tp;
  const double rank = static_cast<double>(a.output_latent_rank);
  w.linear({.name = "grouped output projection",
            .part = kPart,
            .tokens = s.tokens,
            .in = heads * dim / groups,
            .out = rank,
            .count = groups});
  w.save("output latent", s.operand_bytes * s.tokens * groups * rank);
  w.row_parallel({.name = "attention output projection",
                  .part = kPart,
                  .tokens = s.tokens,
                  .in = groups * rank,
                  .out = s.hidden});
}

}  // namespace

void write_compressor(Writer& w, const char* name, double width, double ratio) {
  const RankShape& s = w.shape();
  constexpr double kOverlappingRatio = 4;
  const double wide = width * (ratio == kOverlappingRatio ? 2 : 1);
  replicated_linear(w, name, s.hidden, 2 * wide);
  const double projected = 2 * s.local_tokens * 2 * wide;
  // Forward reads the projections and writes entries, 1/ratio as many; backward reads and writes them.
  w.element_wise("compressor pooling", Part::kAttentionCore, projected * (1 + 0.5 / ratio), projected * 2);
  w.parameters().replicated += ratio * wide;  // positional table of the gate
  w.norm("compressor norm", s.local_tokens / ratio, width);
  w.save("compressor projections", projected);
}

void write_indexer(Writer& w, const model::Attention& a) {
  const RankShape& s = w.shape();
  const double heads = static_cast<double>(a.indexer.heads);
  const double dim = static_cast<double>(a.indexer.head_dim);
  const double ratio = static_cast<double>(a.compress_ratio);
  const double query_in = a.query_latent_rank > 0 ? static_cast<double>(a.query_latent_rank) : s.hidden;
  replicated_linear(w, "indexer query projection", query_in, heads * dim);
  replicated_linear(w, "indexer head weights", s.hidden, heads);
  if (ratio > 0) {
    write_compressor(w, "indexer compressor", dim, ratio);
  } else {
    replicated_linear(w, "indexer key projection", s.hidden, dim);
    w.parameters().replicated += 2 * dim;  // a LayerNorm, whatever the model's norm
    w.save("indexer keys", 2 * s.local_tokens * dim);
  }
  cost::AttentionCore scores;
  scores.batch = s.micro_batch;
  scores.heads = heads;
  scores.kv_heads = 1;
  scores.query_tokens = s.local_tokens / s.micro_batch;
  scores.key_tokens = s.sequence / (ratio > 0 ? ratio : 1);
  scores.pairs_per_head = scores.query_tokens * model::indexer_pairs_per_token(a, s.sequence);
  scores.head_dim = dim;
  w.attention("indexer scores", scores);
  w.save("indexer queries", 2 * s.local_tokens * heads * dim);
  w.save("selected positions", 4 * s.local_tokens * static_cast<double>(a.indexer.top_k));
}

void write_compressed_attention(Writer& w, const model::Attention& a) {
  const RankShape& s = w.shape();
  const double heads = static_cast<double>(a.heads) / s.tp;
  const double dim = static_cast<double>(a.head_dim);
  const double query_rank = static_cast<double>(a.query_latent_rank);

  write_norm_before(w, "attention norm", "normalised attention input", true, 0, true);
  if (query_rank > 0) {
    replicated_linear(w, "query down projection", s.hidden, query_rank);
    w.norm("query latent norm", s.local_tokens, query_rank);
    w.save("query latent", 2 * s.local_tokens * query_rank);
    w.save("normalised query latent", s.operand_bytes * s.local_tokens * query_rank);
  }
  w.column_parallel({.name = "query up projection",
                     .part = kPart,
                     .tokens = s.tokens,
                     .in = query_rank > 0 ? query_rank : s.hidden,
                     .out = heads * dim});
  replicated_linear(w, "key-value projection", s.hidden, dim);
  w.norm("key-value norm", s.local_tokens, dim);
  w.save("key-value latent", 2 * 2 * s.local_tokens * dim);  // before and after its norm
  if (s.sequence_parallel) {
    const double bytes = 2 * s.tokens * dim;
    w.exchange("gather key-value latent", Part::kTensorParallel,
               {CollectiveKind::kAllGather, GroupKind::kTensor, bytes},
               {CollectiveKind::kReduceScatter, GroupKind::kTensor, bytes});
  }
  const double query = 2 * s.tokens * heads * dim;
  w.element_wise("query norm and rotary embedding", Part::kAttentionCore, 2 * query, 3 * query);
  w.save("query before its norm", query);
  w.save("query", query, RecomputeModule::kMlaUpProjection);

  if (a.compress_ratio > 0) write_compressor(w, "compressor", dim, static_cast<double>(a.compress_ratio));
  if (a.indexer.heads > 0) write_indexer(w, a);
  if (a.sinks) w.parameters().replicated += static_cast<double>(a.heads);
  write_core_attention(
      w, a, {.heads = heads, .kv_heads = 1, .head_dim = dim, .value_head_dim = dim, .shared_latent = true});
  w.element_wise("inverse rotary embedding", Part::kAttentionCore, 2 * query, 2 * query);
  write_output(w, a, heads, dim);
}

}  // namespace sextant::layers
