// Memory of a training job, byte by byte, for every pipeline stage.
//
// Rules and their evidence: docs/design/memory.md (Megatron-LM functional tests agree within 1 % on the
// steady figure).
#pragma once

#include <string>
#include <vector>

#include "cost/efficiency.h"
#include "training/job.h"

namespace sextant::training {

struct MemoryItem {
  std::string name;
  double bytes = 0;
};

/// One pipeline rank at its peak. The seven groups add up to total_bytes; `items` split them further.
struct StageMemory {
  int stage = 0;
  double weights_bytes = 0;
  double gradients_bytes = 0;
  double optimizer_bytes = 0;
  double activations_bytes = 0;
  double logits_bytes = 0;
  double communication_bytes = 0;  ///< workspaces, shared buffers, dispatch and gather buffers
  double overhead_bytes = 0;  ///< runtime context, fragmentation: not counted by the framework's allocator
  double total_bytes = 0;
  double in_flight = 0;  ///< micro-batches alive at the peak
  /// Of these, micro-batches that only wait for their weight gradients, at the peak of that count.
  double pending_weight_gradients = 0;
  std::vector<MemoryItem> items;

  double static_bytes() const { return weights_bytes + gradients_bytes + optimizer_bytes; }
  /// What the framework's allocator reports at its peak, and after a step.
  double allocated_bytes() const { return total_bytes - overhead_bytes; }
  double steady_bytes = 0;
};

struct Memory {
  double limit_bytes = 0;
  double peak_bytes = 0;
  int peak_stage = 0;
  bool fits = false;
  std::vector<StageMemory> stages;  ///< one a pipeline rank
};

/// REQUIRES: a layout whose degrees multiply out and whose layers can be dealt (backends' rules hold).
Memory memory(const Job& job, const cost::Efficiency& efficiency);

/// Bytes per parameter on a rank, by the job's framework, precision, optimizer and sharding; `dense` for
/// parameters whose states are spread over the dense data-parallel group, `expert` over the expert one.
struct BytesPerParameter {
  double weight = 0;
  double gradient = 0;
  double optimizer = 0;
  double total() const { return weight + gradient + optimizer; }
};
BytesPerParameter bytes_per_dense_parameter(const Job& job);
BytesPerParameter bytes_per_expert_parameter(const Job& job);

}  // namespace sextant::training
