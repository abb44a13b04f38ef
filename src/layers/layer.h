// A model's layers as lists of operations under a layout: the one description from which FLOPs, time, memory
// and communication are computed.
//
// Everything is per rank and per micro-batch. Byte tables and their sources: docs/design/memory.md; operation
// lists: docs/design/operations.md. Pure functions; results are plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/operation.h"
#include "layers/software.h"
#include "model/model.h"
#include "parallel/layout.h"

namespace sextant::layers {

/// A tensor kept from forward to backward.
struct SavedTensor {
  const char* name = "";
  double bytes = 0;
  /// Selective-recompute modules (parallel::RecomputeModule bits) any of which removes this tensor.
  std::uint32_t freed_by = 0;
  bool layer_input = false;       ///< all that full recomputation keeps
  bool scales_with_skew = false;  ///< routed tokens: grows with the layout's expert skew
};

/// Parameters that one rank holds, by how their states are sharded.
struct RankParameters {
  double dense = 0;       ///< sharded by TP, states over the dense data-parallel group
  double replicated = 0;  ///< same on every TP rank (norms, router, latent down-projections); states as dense
  double expert = 0;      ///< routed experts after EP·ETP, states over the expert data-parallel group
  double embedding = 0;   ///< token table, learned positions and head (also dense for sharding)
  double low_precision = 0;  ///< of the above, weights of linears that keep FP8 copies
  double matrices = 0;       ///< of the above, elements of 2-D matrices that Muon treats as such
  double largest_weight_shapes =
      0;  ///< sum over distinct weight shapes of their elements (dummy weight gradients)

  double total() const { return dense + replicated + expert + embedding; }
};
/// `largest_weight_shapes` is that of one layer: it is added, but not multiplied by `times`.
RankParameters operator+(RankParameters a, const RankParameters& b);
RankParameters operator*(double times, RankParameters a);

/// A weight matrix's shape on a rank; equal shapes share one dummy gradient (see docs/design/memory.md).
struct WeightShape {
  double rows = 0;
  double columns = 0;

  double elements() const { return rows * columns; }
  bool operator==(const WeightShape&) const = default;
};

struct Description {
  std::vector<cost::Operation> operations;  ///< forward in order, then backward in order
  std::vector<SavedTensor> saved;
  RankParameters parameters;
  std::vector<WeightShape> weight_shapes;  ///< distinct shapes of the weight matrices
  double working_set_bytes = 0;  ///< live only while the layer runs: gradients of its largest tensors
};

/// What a rank computes for one decoder layer of `layer_class`. `expert_domains`: fast-link domains that the
/// expert group spans (parallel::Groups::expert.domains), which decides what deduplicating dispatchers send.
Description describe_layer(const model::Model& model, const model::LayerClass& layer_class,
                           const parallel::Layout& layout, const Software& software, int expert_domains = 1);

/// Token and position look-up on the first stage.
Description describe_embedding(const model::Model& model, const parallel::Layout& layout,
                               const Software& software);

/// Final norm, head and loss on the stage that owns them. `tied_copy`: a tied head on another stage than the
/// embedding holds its own copy of the table.
Description describe_head(const model::Model& model, const parallel::Layout& layout, const Software& software,
                          bool tied_copy);

/// One multi-token-prediction depth: its layer, norms, projection, and its own pass through head and loss.
Description describe_mtp_depth(const model::Model& model, const parallel::Layout& layout,
                               const Software& software, int expert_domains = 1);

/// Tokens of a micro-batch on a rank before TP: micro_batch · sequence / cp.
double rank_tokens(const parallel::Layout& layout);
/// Vocabulary padded to a multiple of divisor · tp (Megatron-LM _vocab_size_with_padding).
std::int64_t padded_vocabulary(const model::Model& model, const parallel::Layout& layout,
                               const Software& software);
/// Token copies an expert rank computes, balanced: top_k · tokens/(cp·tp) · etp (independent of EP), times
/// skew.
double routed_tokens(const model::Mlp& mlp, const parallel::Layout& layout);

/// Bytes of activations one stage-boundary tensor has on a rank: 2·tokens·hidden/(tp with sequence
/// parallelism).
double boundary_bytes(const model::Model& model, const parallel::Layout& layout);

/// Bytes per logit element alive at the peak of the loss, by implementation (docs/design/memory.md).
double loss_bytes_per_logit(const parallel::Layout& layout, const Software& software);

}  // namespace sextant::layers
