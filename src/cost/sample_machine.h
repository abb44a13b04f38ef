// Machines for tests: round figures of public data sheets, and an ideal one whose software reaches
// everything.
#pragma once

#include "cluster/cluster.h"
#include "cost/time.h"

namespace sextant::cost::sample {

/// Eight H100 SXM a node: 989.5 TFLOP/s BF16 dense, 3.35 TB/s, 450 GB/s NVLink, eight 400 Gb/s NICs.
inline cluster::Cluster h100(int nodes) {
  cluster::Cluster cluster;
  cluster.name = "h100";
  cluster.nodes = nodes;
  cluster.accelerator.name = "H100";
  cluster.accelerator.family = "hopper";
  cluster.accelerator.memory_bytes = 80e9;
  cluster.accelerator.memory_bandwidth_bytes_per_s = 3.35e12;
  cluster.accelerator.vector_flops = 66.9e12;
  cluster.accelerator.compute_units = 132;
  using enum cluster::Precision;
  const auto peak = [&](cluster::Precision precision) -> double& {
    return cluster.accelerator.peak_flops[static_cast<std::size_t>(precision)];
  };
  peak(kFp32) = 66.9e12;
  peak(kBf16) = peak(kFp16) = 989.5e12;
  peak(kFp8) = 1979e12;
  cluster.node.link_bandwidth_bytes_per_s = 450e9;
  cluster.node.link_latency_s = 0.45e-6;
  cluster.node.nics = 8;
  cluster.node.nic_bandwidth_bytes_per_s = 50e9;
  cluster.node.nic_latency_s = 2e-6;
  return cluster;
}

/// Eight MI300X a node: seven links of 64 GB/s to the peers.
inline cluster::Cluster mi300x(int nodes) {
  cluster::Cluster cluster = h100(nodes);
  cluster.name = "mi300x";
  cluster.node.topology = cluster::NodeTopology::kMesh;
  cluster.node.link_bandwidth_bytes_per_s = 448e9;
  return cluster;
}

/// Everything at its nominal figure, nothing costs a fixed time.
inline Efficiency ideal() {
  Efficiency e;
  e.gemm_fraction.fill(1.0);
  e.gemm_operand_passes = 0;
  e.weight_gradient_bytes = 0;
  e.tile_waste = 0;
  e.grouped_relative = 1;
  e.grouped_half_tokens = 0;
  e.grouped_kernel_s = 0;
  e.grouped_weight_gradient_bytes = 0;
  e.attention_forward_fraction = 1;
  e.attention_backward_relative = 1;
  e.unfused_attention_relative = 1;
  e.element_wise_fraction = 1;
  e.link_fraction = e.nic_fraction = 1;
  e.all_to_all_link_fraction = e.all_to_all_nic_fraction = 1;
  e.collective_latency_s = 0;
  e.half_message_bytes = 0;
  return e;
}

/// The defaults of the struct with a plausible product fraction.
inline Efficiency usual() {
  Efficiency e;
  e.gemm_fraction.fill(0.67);
  return e;
}

/// A group of `ranks` with `inside` members a domain of `domain` GPUs, all groups alike and active.
inline cluster::Placement placed(int ranks, int inside, int domain = 8) {
  cluster::Placement placement;
  placement.ranks = ranks;
  placement.ranks_per_domain = inside;
  placement.domains = ranks / inside;
  placement.ranks_per_pod = ranks;
  placement.senders_per_domain = placement.domains > 1 ? domain / inside : 1;
  return placement;
}

}  // namespace sextant::cost::sample
