// Memory of a stage from terms that many layouts share: the fast path under memory().
//
// A search asks for the memory of tens of thousands of layouts a second. What a layer keeps depends only on
// its layers::DescriptionKey; which layers a stage holds, how many micro-batches are alive, what
// recomputation removes and how states are sharded depend on the rest. So the work is split:
//
//   memory_terms(job)     once per key: every layer class, the embedding, the head, a prediction depth,
//   buffers live_chunks(layout)   once per schedule, pp, vpp, micro-batches and group stage_memory(...) per
//   layout and rank: sums of products, no allocation unless items are asked for peak_bytes(...)       the
//   largest stage
//
// memory(job, efficiency) is these four in a row, so both paths give the same bytes.
// Threading: pure functions of their arguments; a MemoryTerms is read-only once built and may be shared.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cost/efficiency.h"
#include "layers/layer.h"
#include "parallel/layout.h"
#include "parallel/stages.h"
#include "pipeline/live.h"
#include "training/bytes_per_parameter.h"
#include "training/job.h"
#include "training/memory.h"

namespace sextant::training {

/// One layer class, the embedding, the head or a prediction depth on one rank, for one micro-batch.
struct LayerTerms {
  struct Freed {
    std::uint32_t modules = 0;  ///< recomputing any of these parallel::RecomputeModule bits frees the bytes
    double bytes = 0;
  };

  layers::RankParameters parameters;
  double saved_bytes = 0;           ///< kept from forward to backward without recomputation
  double input_bytes = 0;           ///< all that full recomputation keeps
  double working_set_bytes = 0;     ///< gradients alive only while the layer's backward runs
  std::array<Freed, 8> freed{};     ///< one entry a distinct set of modules, unused entries empty
  std::uint64_t weight_shapes = 0;  ///< bits into MemoryTerms::weight_shape_elements

  /// Bytes that recomputing `modules` does not keep.
  double freed_bytes(std::uint32_t modules) const;
};

struct MemoryTerms {
  std::vector<LayerTerms> classes;  ///< as Model::classes
  LayerTerms embedding;
  LayerTerms head;       ///< final norm and an own head matrix (none when tied)
  LayerTerms tied_head;  ///< the same on a stage that does not hold the embedding: with its copy of the table
  LayerTerms prediction_depth;
  bool tied = false;

  int layers = 0;
  /// class_before[c · (layers + 1) + i]: layers of class c among the first i.
  std::vector<int> class_before;
  std::vector<double> weight_shape_elements;  ///< distinct weight shapes of the whole model

  double boundary_bytes = 0;        ///< the tensor between stages
  double logits_bytes = 0;          ///< alive at the peak of the loss, all copies together
  double depth_logits_bytes = 0;    ///< kept a prediction depth
  double context_gather_bytes = 0;  ///< logits gathered over context-parallel ranks; 0 when the loss is local
  double embedding_mask_bytes = 0;  ///< dropout after the embedding
  double mask_bytes = 0;            ///< the data loader's attention mask
  double batch_bytes = 0;
  double context_ring_bytes = 0;
  double deferred_head_bytes = 0;       ///< of one micro-batch whose head weight gradient waits
  double workspace_bytes = 0;           ///< GEMM workspaces of the libraries
  double shared_buffer_bytes = 0;       ///< the framework's global buffer, any stage
  double head_shared_buffer_bytes = 0;  ///< the same on the stage that owns the head
  double dispatch_buffer_bytes = 0;     ///< registered buffers of DeepEP and HybridEP

  StateRule rule = StateRule::kMegatron;
  cluster::Generation generation = cluster::Generation::kOther;
  layers::Software software;
  bool has_experts = false;
};

/// Terms of `job.model` under `job.software` on `job.cluster` for every layout with the description key of
/// `job.layout`.
MemoryTerms memory_terms(const Job& job);

/// What the layout's schedule keeps alive at each rank's peak.
std::vector<pipeline::LivePeak> live_peaks(const parallel::Layout& layout);

/// Of these the chunk passes alive, entry c · pp + r for chunk c of rank r.
std::vector<int> live_chunks(const parallel::Layout& layout);

/// Pipeline rank `rank` of `layout` at its peak. `table` deals the layers (parallel::deal_layers, chunk-major
/// by *virtual stage*), `live` is live_chunks(layout). Fills `items` only when `with_items`.
/// REQUIRES: `terms` were made for the layout's description key.
StageMemory stage_memory(const MemoryTerms& terms, const parallel::Layout& layout,
                         const parallel::StageTable& table, std::span<const int> live, int rank,
                         const cost::Efficiency& efficiency, bool with_items);

/// The largest stage's total_bytes; `peak_stage` (may be null) receives its rank.
double peak_bytes(const MemoryTerms& terms, const parallel::Layout& layout, const parallel::StageTable& table,
                  std::span<const int> live, const cost::Efficiency& efficiency, int* peak_stage = nullptr);

}  // namespace sextant::training
