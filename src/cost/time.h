// How long one operation takes. Pure functions of shape, hardware and efficiency.
#pragma once

#include <array>

#include "cluster/cluster.h"
#include "cluster/placement.h"
#include "cost/efficiency.h"
#include "cost/operation.h"

namespace sextant::cost {

/// Placements by GroupKind, filled by whoever knows the layout.
using GroupPlacements = std::array<cluster::Placement, 8>;

/// The machine as the formulas see it.
struct Machine {
  const cluster::Cluster* cluster = nullptr;
  Efficiency efficiency;
};

double gemm_s(const Gemm& gemm, cluster::Precision precision, const Machine& machine);
double grouped_gemm_s(const GroupedGemm& gemm, cluster::Precision precision, const Machine& machine);
double attention_s(const AttentionCore& attention, const Machine& machine);
double element_wise_s(const ElementWise& work, const Machine& machine);
/// Latency + bandwidth over the levels the group spans; the algorithm a collective library would choose.
double collective_s(const Collective& collective, const cluster::Placement& placement, const Machine& machine);
/// One pipeline hop of `bytes`.
double hop_s(double bytes, bool crosses_nodes, int senders_per_domain, const Machine& machine);

double operation_s(const Operation& operation, const GroupPlacements& placements, const Machine& machine);

/// Bytes that leave this GPU over the fast links and over the NICs in one collective: the traffic that is priced.
struct Traffic {
  double link_bytes = 0;
  double nic_bytes = 0;
};
Traffic traffic(const Collective& collective, const cluster::Placement& placement);

}  // namespace sextant::cost
