// What the operations of a layer take, priced once for all layouts that share its description.
//
// Most layouts of a search differ in schedule, stage split, recomputation, sharding or batch; the layers they
// run are the same. So a layer's operations are priced once per layers::DescriptionKey and kept as a few
// sums: how long each phase computes, how long its collectives take, and how much of the forward pass each
// recomputation module runs again. step_stages.h turns these sums into a layout's stage times.
//
// Overlap, the host's launch time and recomputation are not in the sums: they depend on the rest of the
// layout. Threading: plain data, read-only once built.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cost/time.h"
#include "layers/layer.h"
#include "parallel/groups.h"
#include "parallel/layout.h"
#include "training/job.h"

namespace sextant::training {

/// Seconds of GPU time; collectives as if nothing were hidden.
struct PassTime {
  double compute_s = 0;
  double attention_core_s = 0;  ///< of compute_s: what a ring exchange of keys and values hides behind
  double tensor_s = 0;          ///< collectives of the tensor-parallel group
  double context_ring_s = 0;    ///< keys and values passed around the context-parallel ring
  double context_s = 0;         ///< other context-parallel collectives
  double dispatch_s = 0;        ///< expert dispatch and combine

  PassTime& operator+=(const PassTime& other);
  double total_s() const { return compute_s + tensor_s + context_ring_s + context_s + dispatch_s; }
};

inline constexpr int kPhases = 3;

/// One layer class, the embedding, the head or a prediction depth, for one micro-batch on one rank.
struct LayerTime {
  std::array<PassTime, kPhases> phase;  ///< by cost::Phase
  /// Of each phase's compute_s, by cost::Part.
  std::array<std::array<double, cost::kParts>, kPhases> part_s{};

  /// The forward pass by which recomputation modules run it again: entries with distinct `modules`, no
  /// operation in two of them; operations that no module covers are in none.
  struct Rerun {
    std::uint32_t modules = 0;  ///< parallel::RecomputeModule bits any of which reruns it
    PassTime time;
    int operations = 0;
  };
  std::array<Rerun, 8> rerun{};
  int reruns = 0;
  int forward_operations = 0;
  bool has_experts = false;
  double local_experts = 0;  ///< routed experts on this rank
  bool is_layer = false;     ///< a decoder layer or prediction depth: pays the host's launch time

  const PassTime& of(cost::Phase wanted) const { return phase[static_cast<std::size_t>(wanted)]; }
};

struct StepTerms {
  std::vector<LayerTime> classes;  ///< as Model::classes
  LayerTime embedding;
  LayerTime head;
  LayerTime tied_head;  ///< on a stage that does not hold the embedding
  LayerTime prediction_depth;
  double boundary_bytes = 0;  ///< the tensor between stages, as it lies on a rank
};

/// REQUIRES: as memory(). `machine.efficiency` is the job's.
StepTerms step_terms(const Job& job, const cost::Machine& machine, const parallel::Groups& groups);

/// The placements by cost::GroupKind.
cost::GroupPlacements placements_of(const parallel::Groups& groups, const parallel::Layout& layout);

/// Software on top of the kernels' own times.
struct SoftwareCosts {
  double compute_factor = 1;  ///< multiplies compute, not communication
  double permute_factor = 1;  ///< the same of Part::kPermute
  /// DeepEP. Before each exchange ranks notify each other of how many tokens come, and these land in the
  /// library's buffers, from where they are copied out (csrc/kernels/intranode.cu). Inside a node that eats
  /// what DeepEP saves beside an all-to-all (NVIDIA/Megatron-LM issue 1456: slower on one node;
  /// deepseek-ai/DeepEP issue 59: dispatch 16 to 18 ms, notifying 5 ms, combine 5 ms; all-to-all 13 ms each
  /// way).
  bool dispatches_by_buffers = false;
};

/// The sums of one description.
LayerTime price(const layers::Description& description, const cost::GroupPlacements& placements,
                const cost::Machine& machine, const SoftwareCosts& software);

/// The selective-recomputation modules that rerun operation `at`, one of the forward ones (Megatron-LM
/// --recompute-modules: core_attn, moe_act, layernorm, mla_up_proj, mlp, moe, shared_experts). A
/// tensor-parallel collective goes with the product whose input it gathers or whose output it reduces.
std::uint32_t rerun_by(std::span<const cost::Operation> operations, std::size_t at);

}  // namespace sextant::training
