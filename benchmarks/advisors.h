// Proposers of a known quality, in a language model's place.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "search/prior.h"
#include "search/proposer.h"
#include "virtual_cluster.h"

namespace sextant::benchmarks {

struct Advice {
  double error = 0;          ///< of what it thinks a layout is worth: standard deviation of the logarithm
  bool knows_truth = true;   ///< false: it starts from the projection, as the surrogate does
  bool worst_first = false;  ///< proposes what it thinks slowest among what fits
  /// The provider fails for good at this request, counted from 1.
  std::size_t fails_at_request = std::numeric_limits<std::size_t>::max();
};

/// Proposes what it thinks fastest of the candidates that are projected to fit and were not tried. Its errors
/// are a function of (seed, candidate). Prior and cluster must outlive it.
std::unique_ptr<search::Proposer> advisor(const search::Prior& prior, const VirtualCluster& cluster,
                                          Advice advice, std::uint64_t seed);

}  // namespace sextant::benchmarks
