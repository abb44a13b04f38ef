// A model from Megatron-LM's arguments, and Megatron-LM's arguments from a model.
//
// Meanings follow megatron/training/arguments.py (validate_args, core_transformer_config_from_args),
// megatron/core/models/gpt/gpt_layer_specs.py and, for DeepSeek-V4 and sinks, AMD-AGI/Primus
// (primus/backends/megatron/core/models/deepseek_v4, core/extensions/primus_turbo.py).
#pragma once

#include <string>
#include <vector>

#include "backends/resolved_keys.h"
#include "config/node.h"
#include "model/model.h"

namespace sextant::backends {

/// Which reader's conventions hold where they differ.
struct KeyConventions {
  bool primus = false;  ///< Primus's keys count, and its missing ones have Megatron-LM's defaults
  int generation = 19;  ///< minor version of the Megatron-core underneath
};

/// Throws base::UserError, at the key, for what Sextant does not model: diffusion, Mamba and linear-attention
/// hybrids, convolution layers, heterogeneous layers, low-rank adaptation, reinforcement learning.
void refuse_unsupported_keys(const ResolvedKeys& keys);

/// The model that `keys` describe. A vocabulary that neither vocab_size nor a known tokenizer gives is an
/// error, never a default. Appends to `warnings` what was assumed. Throws base::UserError at the key.
model::Model model_from_keys(const ResolvedKeys& keys, const std::string& name,
                             const KeyConventions& conventions, std::vector<std::string>& warnings);

/// Writes into `keys` everything that `model_from_keys` needs to build the same model again. `existing`: the
/// keys that hold already; optional keys are written only where they differ from Megatron-LM's default or
/// stand there. Appends to `notes` what cannot be said.
void write_model_keys(const model::Model& model, const KeyConventions& conventions,
                      const config::Node& existing, config::Node& keys, std::vector<std::string>& notes);

}  // namespace sextant::backends
