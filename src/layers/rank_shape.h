// Sizes of one micro-batch on one rank, in the symbols of docs/design/memory.md.
#pragma once

#include "cluster/precision.h"
#include "layers/software.h"
#include "model/model.h"
#include "parallel/layout.h"

namespace sextant::layers {

struct RankShape {
  double tokens = 0;  ///< T: micro_batch · sequence / cp, before tensor parallelism
  double local_tokens =
      0;  ///< T/σ: what norms, residuals and the router see; tokens / tp with sequence parallelism
  double hidden = 0;
  double micro_batch = 0;
  double sequence = 0;
  double context_sequence = 0;  ///< sequence / cp
  int tp = 1, cp = 1, ep = 1, etp = 1;
  bool sequence_parallel = false;                            ///< effective: needs tp > 1
  cluster::Precision precision = cluster::Precision::kBf16;  ///< of the linears
  /// Bytes of an element of a linear's operand as it is kept for backward and gathered: 2, or the quantised
  /// copy.
  double operand_bytes = 2;

  /// u: bytes of a bf16 tensor of residual width.
  double stream_bytes() const { return 2 * local_tokens * hidden; }
};

RankShape rank_shape(const model::Model& model, const parallel::Layout& layout);

/// Bytes of a quantised element with its share of the block scales; 2 for 16-bit precisions.
double saved_operand_bytes(cluster::Precision precision);

/// Bytes of memory traffic that quantising one element takes, by recipe: read the 16-bit value (twice when
/// its scale needs a pass of its own), write it in both orientations for the forward and the weight-gradient
/// product.
double quantise_bytes(cluster::Precision precision, cluster::Fp8Recipe recipe);

}  // namespace sextant::layers
