// The second half of a layer: dense MLP or mixture of experts.
#pragma once

#include "layers/writer.h"

namespace sextant::layers {

/// Writes norm and MLP of either kind, without the residual. `expert_domains` as in describe_layer.
void write_mlp(Writer& writer, const model::Mlp& mlp, int expert_domains);

/// Widths of an MLP on a rank.
struct MlpShape {
  double tokens = 0;
  double ffn = 0;  ///< after the activation, per rank
  bool gated = false;

  double first_width() const { return ffn * (gated ? 2 : 1); }
};

/// Whether a gated activation runs as separate operators, which keep the activated gate beside both halves:
/// eager PyTorch of torchtitan (models/common/feed_forward.py) and nanotron.
bool activates_gate_apart(const Software& software);

/// Up-projection (both halves of a gated one), activation, down-projection; a dense MLP or the shared
/// experts.
void write_dense_mlp(Writer& writer, const MlpShape& shape, const model::Mlp& mlp, bool shared_expert);

void write_experts(Writer& writer, const model::Mlp& mlp, int expert_domains);

/// Traffic of the activation function: forward reads the up-projection and writes the result, backward reads
/// both and the gradient and writes the up-projection's.
void write_activation(Writer& writer, cost::Part part, const MlpShape& shape);

/// Fast-link domains other than its own that a token reaches in expectation, when its `top_k` experts fall
/// evenly on `domains`: n(1 − (1 − 1/n)^k) distinct ones, of which (n−1)/n are remote; at most `group_limit`
/// (0: none) distinct.
double expected_remote_domains(int domains, double top_k, double group_limit);
/// Distinct ranks of `ranks` that a token reaches in expectation, its own among them; group-limited routing
/// leaves `group_share` of them.
double expected_ranks(int ranks, double top_k, double group_share);

}  // namespace sextant::layers
