// Bytes of weights, gradients and optimizer state a parameter costs its rank, by framework, precision,
// optimizer and sharding. Sources and evidence: docs/design/memory.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "cluster/cluster.h"
#include "layers/software.h"
#include "parallel/layout.h"
#include "training/memory.h"

namespace sextant::training {

/// Families of frameworks that keep training state alike.
enum class StateRule : std::uint8_t {
  kMegatron,           ///< Megatron-LM, Megatron-Bridge, NeMo, Primus
  kMegatronDeepSpeed,  ///< BigScience's fork: ZeRO-1 by DeepSpeed
  kTorchtitan,         ///< fp32 parameters, FSDP2
  kNanotron,
  kInternEvo,
};
StateRule state_rule(std::string_view framework);

/// What state of which kind costs. Everything is bytes per parameter on the rank.
struct StateBytes {
  BytesPerParameter dense;         ///< vectors, embeddings; with Adam, matrices too
  BytesPerParameter dense_matrix;  ///< 2-D matrices (differs from `dense` under Muon)
  BytesPerParameter expert;
  double low_precision_weight =
      0;  ///< change of `weight` for weights of linears that run in FP8 (copies, or FP8 only)
  double after_step_gradient =
      0;  ///< kept from the step to the next zero_grad, dense; not alive in forward/backward
  double after_step_expert_gradient = 0;
};
StateBytes state_bytes(StateRule rule, const parallel::Layout& layout, const layers::Software& software,
                       cluster::Generation generation);

}  // namespace sextant::training
