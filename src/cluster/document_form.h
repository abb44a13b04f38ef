// Sextant's own form of a cluster in YAML, shared by data/clusters/ and users' files:
//
//   accelerator: mi355x            # optional: start from this catalogue entry; keys below replace its
//   figures name: MI355X                   # of the accelerator when there is no `accelerator`, else of the
//   cluster vendor: AMD generation: cdna4              # ampere, hopper, blackwell, cdna3, cdna4, other
//   family: cdna4                  # whose calibration it borrows
//   memory_gib: 287.98             # usable by a process
//   memory_bandwidth_tb_per_s: 8.0
//   peak_tflops: {bf16: 2500, fp8: 5000}   # dense, by precision
//   vector_tflops: 157.3
//   compute_units: 256
//   node: {gpus, domain_gpus, topology: mesh|switch, link_bandwidth_gb_per_s, link_latency_us, nics,
//          nic_bandwidth_gb_per_s, nic_latency_us, gpu_initiated_rdma, host}
//   network: {pod_gpus, pod_bandwidth_gb_per_s, pod_latency_us}
//   nodes: 4
//   price_per_gpu_hour: 2.5
//   memory_safety_margin: 0.1
//   sources: {memory_gib: where the figure is from, …}
//
// Catalogue files add `aliases`, `nominal_memory_gb` (sizes the part is sold as) and, where the nominal part
// has other usable bytes than `memory_gib`, `nominal_memory_gib`.
#pragma once

#include <string>

#include "cluster/cluster.h"
#include "config/node.h"

namespace sextant::cluster {

/// Lays the figures of `document` over `cluster`. Throws base::UserError for unknown keys and impossible
/// figures.
void read_document_form(const config::Node& document, Cluster& cluster);

/// "switch" or "mesh". Throws base::UserError for anything else.
NodeTopology read_topology(const config::Node& node);

}  // namespace sextant::cluster
