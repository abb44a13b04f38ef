// Collectives: a fixed software cost, latency by steps, bytes by bandwidth.
//
// *All-gather and reduce-scatter* of V bytes over N ranks move V·(N−1)/N through every rank. Two algorithms,
// the faster one is taken, as collective libraries do:
//   ring         bandwidth of the slowest hop; N − d link steps and d − 1 network steps over d domains (NCCL
//                src/graph/tuning.cc: nsteps, nInterSteps);
//   logarithmic  g − 1 link steps and ⌈log₂ d⌉ network steps at 0.9 of the bandwidth (the same file's tree;
//   PAT
//                in NCCL 2.23, Jeaugey, arXiv 2506.20252).
// The slowest hop: inside a domain the links; between domains the crossing's share of the NICs (network.h),
// when that is less. A ring of g ranks a domain is really g rings, one through each GPU's NIC, so one
// crossing has up to g NICs. Short messages do not fill the pipe: a transfer of V costs as V + half_message
// (half the bandwidth at that size).
//
// *All-reduce* is a reduce-scatter and an all-gather in one call: their sum, with the software cost once. It
// is thus never cheaper than either.
//
// *All-to-all*: each rank sends V/N to each peer. Links and NICs work at the same time, the slower one
// decides. Inside the domain V·(g−1)/N crosses the links; V·(N−g)/N leaves over the rank's own share of the
// NICs, since all ranks send at once. A dispatcher that deduplicates (DeepEP) sends each token once to each
// distinct remote domain, to the GPU opposite, which forwards it over the links, once to each distinct rank
// there: V/copies · distinct domains over the NIC and V/copies · distinct ranks · (g−1)/g over the links
// (deepseek-ai/DeepEP, csrc/kernels/intranode.cu: is_token_in_rank; the combine adds up on the way back).
// Messages are posted one after another: a step a local peer, and a posting cost a remote peer.
//
// *Send-receive* is a hop (hop.cpp).
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "cost/network.h"
#include "cost/time.h"

namespace sextant::cost {
namespace {

/// Of the ring's bandwidth; NCCL src/graph/tuning.cc ("busBw*.9" for NCCL_ALGO_TREE).
constexpr double kTreeBandwidth = 0.9;
/// Posting one more message to a remote peer; AMD-AGI/Primus collective_args.py, a2a_peer_lat.
constexpr double kRemotePeerSeconds = 0.45e-6;

double log2_ceiling(int n) {
  return n <= 1 ? 0 : static_cast<double>(std::bit_width(static_cast<unsigned>(n - 1)));
}

double members_inside(const cluster::Placement& p) {
  return p.inside_domain() ? p.ranks : p.ranks_per_domain;
}

/// Bandwidth of the slowest hop of a ring.
double ring_bandwidth(const cluster::Placement& p, const Machine& machine) {
  const cluster::Cluster& cluster = *machine.cluster;
  const Efficiency& e = machine.efficiency;
  const double link = link_bandwidth(cluster.node, members_inside(p)) * std::min(e.link_fraction, 1.0);
  if (p.inside_domain()) return link;
  const double nic = crosses_pods(p) ? pod_nic_bandwidth(cluster) : cluster.node.nic_bandwidth_bytes_per_s;
  const double crossing = nics_per_crossing(cluster.node, p.senders_per_domain, p.ranks_per_domain) * nic *
                          std::min(e.nic_fraction, 1.0);
  return p.ranks_per_domain > 1 ? std::min(link, crossing) : crossing;
}

/// All-gather or reduce-scatter without the software cost of the call.
double half_reduction_s(double bytes, const cluster::Placement& p, const Machine& machine) {
  const cluster::Cluster& cluster = *machine.cluster;
  const double ranks = p.ranks;
  const double share = (ranks - 1) / ranks;
  const double bandwidth = ring_bandwidth(p, machine);
  const double transfer_s = (bytes + machine.efficiency.half_message_bytes) * share / bandwidth;

  const double link_s = cluster.node.link_latency_s;
  const double network_s = network_latency_s(cluster, crosses_pods(p));
  const double network_steps = p.domains - 1;
  const double ring_s = transfer_s + (ranks - 1 - network_steps) * link_s + network_steps * network_s;
  if (p.inside_domain()) return ring_s;
  const double tree_s =
      transfer_s / kTreeBandwidth + (p.ranks_per_domain - 1) * link_s + log2_ceiling(p.domains) * network_s;
  return std::min(ring_s, tree_s);
}

/// Bytes of an all-to-all by what carries them.
struct Volume {
  double link = 0;
  double nic = 0;
  double pod = 0;  ///< of `nic`, what leaves the pod
};

bool deduplicates(const Collective& c) { return c.distinct_domains_per_token > 0 && c.copies_per_token > 0; }

Volume all_to_all_volume(const Collective& c, const cluster::Placement& p) {
  const double ranks = p.ranks;
  const double inside = members_inside(p);
  Volume volume{c.bytes * (inside - 1) / ranks, c.bytes * (ranks - inside) / ranks, 0};
  if (volume.nic > 0 && crosses_pods(p)) volume.pod = c.bytes * (ranks - p.ranks_per_pod) / ranks;
  // What the ranks of a domain hand to one another when every copy, or one for each rank, ends there.
  const double received = c.distinct_ranks_per_token > 0 && c.copies_per_token > 0
                              ? c.bytes * std::min(1.0, c.distinct_ranks_per_token / c.copies_per_token)
                              : c.bytes;
  if (p.inside_domain()) volume.link = received * (inside - 1) / inside;
  if (volume.nic <= 0 || !deduplicates(c)) return volume;
  const double once_a_domain = c.bytes / c.copies_per_token * c.distinct_domains_per_token;
  if (once_a_domain < volume.nic) {
    volume.pod *= once_a_domain / volume.nic;
    volume.nic = once_a_domain;
    volume.link = received * (inside - 1) / inside;
  }
  return volume;
}

double all_to_all_s(const Collective& c, const cluster::Placement& p, const Machine& machine) {
  const cluster::Cluster& cluster = *machine.cluster;
  const Efficiency& e = machine.efficiency;
  const Volume volume = all_to_all_volume(c, p);
  const double inside = members_inside(p);

  const double local_peers = inside - 1;
  double latency_s = e.collective_latency_s + local_peers * cluster.node.link_latency_s;
  double transfer_s = 0;
  if (volume.link > 0) {
    transfer_s =
        volume.link / (link_bandwidth(cluster.node, inside) * std::min(e.all_to_all_link_fraction, 1.0));
  }
  if (volume.nic > 0) {
    const double senders = static_cast<double>(p.senders_per_domain) * p.ranks_per_domain;
    double nics = nics_per_crossing(cluster.node, senders, 1) * std::min(e.all_to_all_nic_fraction, 1.0);
    if (deduplicates(c) && !cluster.node.gpu_initiated_rdma) nics *= e.proxied_dispatch_relative;
    transfer_s = std::max({transfer_s, volume.nic / (nics * cluster.node.nic_bandwidth_bytes_per_s),
                           volume.pod / (nics * pod_nic_bandwidth(cluster))});
    const double remote_peers = deduplicates(c) ? p.domains - 1 : p.ranks - inside;
    latency_s += network_latency_s(cluster, volume.pod > 0) +
                 remote_peers * std::max(kRemotePeerSeconds, cluster.node.link_latency_s);
  }
  return latency_s + transfer_s;
}

}  // namespace

double collective_s(const Collective& c, const cluster::Placement& p, const Machine& machine) {
  if (p.ranks <= 1 || c.bytes <= 0 || c.count <= 0) return 0;
  const double call_s = machine.efficiency.collective_latency_s;
  switch (c.kind) {
    case CollectiveKind::kAllReduce:
      return c.count * (call_s + 2 * half_reduction_s(c.bytes, p, machine));
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return c.count * (call_s + half_reduction_s(c.bytes, p, machine));
    case CollectiveKind::kAllToAll:
      return c.count * all_to_all_s(c, p, machine);
    case CollectiveKind::kSendReceive:
      return c.count * hop_s(c.bytes, !p.inside_domain(), p.senders_per_domain, machine);
  }
  SEXTANT_CHECK(false && "unknown collective");
  return 0;
}

Traffic traffic(const Collective& c, const cluster::Placement& p) {
  if (p.ranks <= 1 || c.bytes <= 0 || c.count <= 0) return {};
  if (c.kind == CollectiveKind::kAllToAll) {
    const Volume volume = all_to_all_volume(c, p);
    return {c.count * volume.link, c.count * volume.nic};
  }
  double sent = c.bytes;
  if (c.kind != CollectiveKind::kSendReceive) sent *= (p.ranks - 1.0) / p.ranks;
  if (c.kind == CollectiveKind::kAllReduce) sent *= 2;
  sent *= c.count;
  if (p.inside_domain()) return {sent, 0};
  // Of the g members of a ring in a domain, one hands its bytes to a NIC and the others to a link.
  const double crossing = 1.0 / p.ranks_per_domain;
  return {sent * (1 - crossing), sent * crossing};
}

}  // namespace sextant::cost
