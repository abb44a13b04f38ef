// Model FLOPs utilisation: useful FLOP/s over the dense peak.
#pragma once

#include <optional>

#include "cluster/cluster.h"

namespace sextant::cost {

/// Share of the accelerator's *dense* peak at `precision` that `flops_per_s` (model FLOPs of one GPU) is.
/// Datasheets also print peaks with structured sparsity, twice as high; those give half of the truth
/// (NVIDIA/Megatron-LM issue 1565). Nothing when the catalogue has no such peak: no MFU rather than a guessed
/// one.
std::optional<double> model_flops_utilisation(double flops_per_s, cluster::Precision precision,
                                              const cluster::Accelerator& accelerator);

}  // namespace sextant::cost
