#include "cost/time.h"

#include <variant>

namespace sextant::cost {
namespace {

struct Pricing {
  const Operation& operation;
  const GroupPlacements& placements;
  const Machine& machine;

  double operator()(const Gemm& gemm) const { return gemm_s(gemm, operation.precision, machine); }
  double operator()(const GroupedGemm& gemm) const {
    return grouped_gemm_s(gemm, operation.precision, machine);
  }
  double operator()(const AttentionCore& attention) const { return attention_s(attention, machine); }
  double operator()(const ElementWise& work) const {
    const double seconds = element_wise_s(work, machine);
    return operation.part == Part::kPermute ? seconds * machine.efficiency.permute_passes : seconds;
  }
  double operator()(const Collective& collective) const {
    return collective_s(collective, placements[static_cast<std::size_t>(collective.group)], machine);
  }
};

}  // namespace

double operation_s(const Operation& operation, const GroupPlacements& placements, const Machine& machine) {
  return std::visit(Pricing{operation, placements, machine}, operation.work);
}

}  // namespace sextant::cost
