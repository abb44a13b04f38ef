// Measured layers in the place of the cost model's.
//
// A profile says what single layers took, and kept from forward to backward, on one node under one layout. A
// job of another size runs the same layers under other degrees, micro-batches and lengths, for which only the
// cost model can say how they scale. So a profile is turned into one factor for each layer and pass,
// measured / projected *under the profile's own layout*, and every projection of the job multiplies its
// layers' compute by that factor:
//
//   time of a layer under layout L = cost model(L) · measured(P) / cost model(P)      P: the profile's layout
//
// Under the profile's own layout a layer takes exactly what was measured; elsewhere the cost model
// contributes ratios only. What no profile of layers contains stays the cost model's: collectives between
// nodes, pipeline bubbles, gradient traffic, optimizer, data-parallel overlap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "training/job.h"
#include "training/memory_terms.h"
#include "training/step_terms.h"

namespace sextant::training {

/// One layer, the embedding or the head for one micro-batch on one rank.
struct MeasuredLayer {
  double forward_s = 0;
  double backward_s = 0;   ///< both gradients, nothing recomputed
  double saved_bytes = 0;  ///< kept from forward to backward; 0 = not measured
  /// Exchange of tokens between expert ranks, part of the above. Where it is known, it is left out of the
  /// comparison and stays the cost model's, because at the target it may cross nodes.
  std::optional<double> dispatch_forward_s{};
  double dispatch_backward_s = 0;
};

struct LayerProfile {
  std::string source;  ///< for people: the file
  /// Degrees, micro-batch, sequence length and world of the measurement; all else is the job's.
  parallel::Layout layout;
  std::optional<std::int64_t> experts;  ///< of the measured model, where it had fewer than the job's
  struct Class {
    std::optional<MeasuredLayer> measured{};
    /// A class that was not measured itself shares the factor of another of its kind; -1 = the cost model's.
    int like = -1;
  };
  std::vector<Class> classes;  ///< as Model::classes
  std::optional<MeasuredLayer> embedding, head;
};

/// Factors over the cost model, 1 where nothing was measured.
struct LayerScale {
  double forward = 1;
  double backward = 1;
  double saved = 1;
  /// The measured layer is faster than the cost model thinks the host can launch: its launches are not waited
  /// for.
  bool host_keeps_up = false;
};

/// One line of how a profile compares with the cost model, under the profile's layout.
struct ScaledLayer {
  std::string name;  ///< of the class; "embedding", "head"
  MeasuredLayer measured;
  MeasuredLayer projected;  ///< without what `measured` leaves to the cost model
  LayerScale scale;
};

struct MeasuredTerms {
  std::string source;
  parallel::Layout layout;
  std::vector<LayerScale> classes;
  LayerScale embedding, head;
  std::vector<ScaledLayer> layers;      ///< those measured
  std::vector<std::string> unmeasured;  ///< classes that stay the cost model's
};

/// Compares the profile with the cost model for `job`, whose own `measured` is not looked at.
/// REQUIRES: the profile's degrees divide its world; `classes` as the model's.
MeasuredTerms measured_terms(const Job& job, const LayerProfile& profile);

/// Multiplies compute, and what recomputation runs again.
void scale_step(const MeasuredTerms& measured, StepTerms& terms);
/// Multiplies what is kept for the backward pass; a layer's input keeps its size.
void scale_memory(const MeasuredTerms& measured, MemoryTerms& terms);

}  // namespace sextant::training
