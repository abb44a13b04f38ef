// What of the links and NICs one group of ranks gets. Bandwidths are nominal; fractions come on top.
#pragma once

#include <algorithm>

#include "cluster/cluster.h"
#include "cluster/placement.h"

namespace sextant::cost {

/// Link bandwidth that a GPU reaches inside its domain when `members` ranks of it talk to one another. A
/// switch gives all of it to any pair. In a mesh of n GPUs a rank has one link to each peer, so a group of g
/// uses g − 1 of n − 1.
inline double link_bandwidth(const cluster::Node& node, double members) {
  if (node.topology == cluster::NodeTopology::kSwitch || node.domain_gpus <= 1)
    return node.link_bandwidth_bytes_per_s;
  return node.link_bandwidth_bytes_per_s * std::max(members - 1, 1.0) / (node.domain_gpus - 1);
}

/// NICs that one crossing of a domain's border gets: its share among `senders`, and at most the NICs that
/// belong to the `members` GPUs which feed it (a lone GPU does not reach its neighbours' NICs; where GPUs
/// outnumber NICs, one GPU may use a whole one).
inline double nics_per_crossing(const cluster::Node& node, double senders, double members) {
  const double nics_per_gpu = static_cast<double>(node.nics) / node.gpus;
  const double share = nics_per_gpu * node.domain_gpus / std::max(senders, 1.0);
  return std::min(share, std::max(members, 1.0) * std::max(nics_per_gpu, 1.0));
}

/// Whether a group leaves its pod, and so meets the network's pod figures.
inline bool crosses_pods(const cluster::Placement& placement) {
  return placement.ranks_per_pod < placement.ranks;
}

/// One NIC's bandwidth between pods; the NIC's own when the network names no other.
inline double pod_nic_bandwidth(const cluster::Cluster& cluster) {
  const double pod = cluster.network.pod_bandwidth_bytes_per_s;
  const double nic = cluster.node.nic_bandwidth_bytes_per_s;
  return pod > 0 ? std::min(pod, nic) : nic;
}

/// One message to another domain.
inline double network_latency_s(const cluster::Cluster& cluster, bool between_pods) {
  const double nic = cluster.node.nic_latency_s;
  return between_pods ? std::max(nic, cluster.network.pod_latency_s) : nic;
}

}  // namespace sextant::cost
