// The attention half of a layer: norm, projections, core, output projection.
#pragma once

#include "layers/writer.h"

namespace sextant::layers {

/// Writes norm, attention and output projection of `attention` (any kind), without the residual.
void write_attention(Writer& writer, const model::Attention& attention);

/// Query-key pairs of one head over one sequence: S²/2 causal (the convention FLOPs are counted with),
/// exactly w·S − w(w−1)/2 under a window w < S.
double causal_pairs(double sequence, double window);

/// Pairs with compressed entries: entry e of ratio r is visible from position r·(e+1)−1 on; at most `top_k`
/// entries (0: all) a query.
double compressed_pairs(double sequence, double ratio, double top_k);

/// The norm before a sub-layer whose linears read its output: keeps its input and its output. `quantised`:
/// the output is kept as the linear's quantised operand only.
void write_norm_before(Writer& writer, const char* norm_name, const char* output_name, bool quantised,
                       std::uint32_t output_freed_by, bool is_layer_input);

/// Core attention over per-rank heads, with its context-parallel exchange and what it keeps.
/// `quantised_copy`: the output projection keeps a quantised copy beside what fused attention keeps itself.
struct CoreShape {
  double heads = 0, kv_heads = 0;  ///< per TP rank
  double head_dim = 0, value_head_dim = 0;
  double pairs = 0;  ///< of one sequence, whole context
  double window = 0;
  bool shared_latent = false;  ///< keys and values are one narrow vector: context parallelism gathers it
};
void write_core_attention(Writer& writer, const CoreShape& core);

void write_latent_attention(Writer& writer, const model::Attention& attention);
void write_compressed_attention(Writer& writer, const model::Attention& attention);

}  // namespace sextant::layers
