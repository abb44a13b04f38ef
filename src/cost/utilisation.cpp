#include "cost/utilisation.h"

namespace sextant::cost {

std::optional<double> model_flops_utilisation(double flops_per_s, cluster::Precision precision,
                                              const cluster::Accelerator& accelerator) {
  const double peak = accelerator.peak(precision);
  if (peak <= 0) return std::nullopt;
  return flops_per_s / peak;
}

}  // namespace sextant::cost
