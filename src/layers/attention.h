// The attention half of a layer: norm, projections, core, output projection.
#pragma once

#include "layers/writer.h"

namespace sextant::layers {

/// Writes norm, attention and output projection of `attention` (any kind), without the residual.
void write_attention(Writer& writer, const model::Attention& attention);

/// The norm before a sub-layer whose linears read its output: keeps its input and its output. `quantised`:
/// the output is kept as the linear's quantised operand only.
void write_norm_before(Writer& writer, const char* norm_name, const char* output_name, bool quantised,
                       std::uint32_t output_freed_by, bool is_layer_input);

/// Core attention over per-rank heads, with its context-parallel exchange and what it keeps.
struct CoreShape {
  double heads = 0, kv_heads = 0;  ///< per TP rank
  double head_dim = 0, value_head_dim = 0;
  bool shared_latent = false;  ///< keys and values are one narrow vector: context parallelism gathers it
};
void write_core_attention(Writer& writer, const model::Attention& attention, const CoreShape& core);

/// Lightning indexer (DeepSeek-V3.2, V4): index queries from the query latent, one weight a head, and index
/// keys: one a token with a LayerNorm, or one a pool of compress_ratio tokens. Its scores pick the positions
/// that the core attends to.
void write_indexer(Writer& writer, const model::Attention& attention);

/// Pools `ratio` tokens into one vector of `width`: value and gate projections, a softmax over the slots, a
/// norm. Neighbouring pools overlap at ratio 4, which doubles the projections.
void write_compressor(Writer& writer, const char* name, double width, double ratio);

void write_latent_attention(Writer& writer, const model::Attention& attention);
void write_compressed_attention(Writer& writer, const model::Attention& attention);

}  // namespace sextant::layers
