// One layer's parameters, matrices and vectors apart: what counts and FLOPs are both summed from.
#pragma once

#include <cstdint>

#include "model/model.h"

namespace sextant::model {

struct Elements {
  std::int64_t matrices = 0;  ///< multiplied with every token: 6 FLOPs an element, forward and backward
  std::int64_t vectors = 0;   ///< norms, biases, sinks, position biases

  std::int64_t total() const { return matrices + vectors; }
};

/// By how tensor parallelism treats them (parameters.h).
struct AttentionElements {
  Elements sharded;
  Elements kv_sharded;
  Elements replicated;
};
AttentionElements attention_elements(const Model& model, const Attention& attention);

struct MlpElements {
  Elements dense;
  Elements routed_experts;  ///< all of them
  Elements shared_experts;
  Elements router;
  std::int64_t lookup_table = 0;
};
MlpElements mlp_elements(const Model& model, const Mlp& mlp);

/// Weights of one norm of width `width`: two vectors for LayerNorm with bias, else one.
std::int64_t norm_elements(const Model& model, std::int64_t width);

/// Hyper-connections of one layer (both sub-layers), and of the head.
Elements hyper_connection_elements(const Model& model);
Elements hyper_connection_head_elements(const Model& model);

/// One multi-token-prediction depth without its layer: norms, projection, hyper-connection head.
Elements mtp_frame_elements(const Model& model);

}  // namespace sextant::model
