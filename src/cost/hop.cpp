// A message from one GPU to one other: a pipeline hop, or a step of a context-parallel ring.
//
// A lone GPU reaches one peer over one link of a mesh, over all its links through a switch, and its share of
// the domain's NICs across. Whether the sender splits a tensor over its tensor-parallel ranks first
// (Megatron-LM's scatter-gather, arXiv 2104.04473 §4.1) is in `bytes` already.
#include "cost/network.h"
#include "cost/time.h"

namespace sextant::cost {

double hop_s(double bytes, bool crosses_nodes, int senders_per_domain, const Machine& machine) {
  if (bytes <= 0) return 0;
  const cluster::Cluster& cluster = *machine.cluster;
  const Efficiency& e = machine.efficiency;
  if (!crosses_nodes) {
    const double link = link_bandwidth(cluster.node, 2) * std::min(e.link_fraction, 1.0);
    return e.collective_latency_s + cluster.node.link_latency_s + bytes / link;
  }
  const double nic = nics_per_crossing(cluster.node, senders_per_domain, 1) *
                     cluster.node.nic_bandwidth_bytes_per_s * std::min(e.nic_fraction, 1.0);
  return e.collective_latency_s + cluster.node.nic_latency_s + bytes / nic;
}

}  // namespace sextant::cost
