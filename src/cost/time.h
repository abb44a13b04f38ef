// How long one operation takes. Pure functions of shape, hardware and efficiency, in seconds; no allocation,
// any thread.
//
// Each formula and its source stands at the top of the file that computes it (gemm.cpp, attention.cpp,
// element_wise.cpp, collective.cpp, hop.cpp); docs/design/cost.md has them together with what was tried and
// dropped. All return 0 for empty work, and none is ever faster than its FLOPs at the peak or its bytes at
// the nominal bandwidth.
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

/// REQUIRES for all: `machine.cluster` is set, its accelerator has a memory bandwidth and a 16-bit peak.
double gemm_s(const Gemm& gemm, cluster::Precision precision, const Machine& machine);
double grouped_gemm_s(const GroupedGemm& gemm, cluster::Precision precision, const Machine& machine);
double attention_s(const AttentionCore& attention, const Machine& machine);
double element_wise_s(const ElementWise& work, const Machine& machine);
/// Latency + bandwidth over the levels the group spans; the algorithm a collective library would choose. All
/// `count` times. An all-reduce is never faster than the all-gather or reduce-scatter of the same bytes. On a
/// switch, more ranks never help; in a mesh they may (more links), and so may more members a domain (more
/// NICs).
double collective_s(const Collective& collective, const cluster::Placement& placement,
                    const Machine& machine);
/// One message of `bytes` to one other GPU: a pipeline hop, a step of a context-parallel ring.
/// `senders_per_domain` GPUs of a domain send theirs at the same time.
double hop_s(double bytes, bool crosses_nodes, int senders_per_domain, const Machine& machine);

/// Any operation; a collective with the placement of its group. Permutations cost `permute_passes` times
/// their bytes.
double operation_s(const Operation& operation, const GroupPlacements& placements, const Machine& machine);

/// Bytes that leave this GPU over the fast links and over the NICs, all `count` times together: the traffic
/// that is priced. Averages where the members of a ring differ: one of the g in a domain feeds the NICs.
struct Traffic {
  double link_bytes = 0;
  double nic_bytes = 0;
};
Traffic traffic(const Collective& collective, const cluster::Placement& placement);

}  // namespace sextant::cost
