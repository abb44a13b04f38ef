// Memory-bound work: norms, activations, residuals, rotary embeddings, permutations, quantisation, losses.
//
// bytes · element_wise_passes / (bandwidth · element_wise_fraction), or the vector units' time when that is
// longer. `bytes` is what perfectly fused kernels would move; `element_wise_passes` says how far a framework
// is from that. Never faster than the bytes at the nominal bandwidth.
#include <algorithm>

#include "cost/time.h"

namespace sextant::cost {

double element_wise_s(const ElementWise& work, const Machine& machine) {
  const Efficiency& e = machine.efficiency;
  const cluster::Accelerator& accelerator = machine.cluster->accelerator;
  const double slowness = std::max(1.0, e.element_wise_passes / e.element_wise_fraction);
  const double memory_s = work.bytes * slowness / accelerator.memory_bandwidth_bytes_per_s;
  const double vector_s = accelerator.vector_flops > 0 ? work.flops / accelerator.vector_flops : 0;
  return std::max(memory_s, vector_s);
}

}  // namespace sextant::cost
