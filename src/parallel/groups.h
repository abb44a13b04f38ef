// Rank order and communication groups: who talks to whom, and where they lie.
//
// Megatron-LM's order (parallel_state.RankGenerator, "tp-cp-ep-dp-pp"): tensor ranks are neighbours, then
// context, then data, and pipeline ranks are furthest apart. Expert groups are laid out over the same ranks
// as "tp-cp-ep-dp-pp" with etp in tp's place and no cp: etp, then ep, then edp, then pp. So every kind of
// group is a row of equally distant ranks: first rank + i · stride.
//
// What a Placement says. Ranks fill the fast-link domains in order. When every group of the kind lies alike,
// ranks = ranks_per_domain × domains. When groups straddle domains unevenly (tensor groups of 6 on nodes of
// 8), it describes the worst lie, because all groups work at once and the step waits for the slowest:
// `domains` is the most that one group touches, `ranks_per_domain` the fewest members that a group has in a
// domain it touches; their product is then at most `ranks`. `ranks_per_pod` likewise.
//
// senders_per_domain: how many GPUs of a domain use its NICs at the same time when every group runs one ring.
// A ring enters and leaves a domain once, however many members it has there, so a group that crosses counts
// one sender in each domain it touches: a domain of D GPUs with g members of each group has D / g senders. In
// other words, g members share g GPUs' worth of NICs for one crossing. Patterns in which every member sends
// to other domains (all-to-all) have senders_per_domain × ranks_per_domain senders. 1 when nothing crosses.
#pragma once

#include <string_view>

#include "cluster/cluster.h"
#include "cluster/placement.h"
#include "parallel/layout.h"

namespace sextant::parallel {

struct Groups {
  cluster::Placement tensor;
  cluster::Placement context;
  cluster::Placement data;    ///< dp·cp ranks that share dense gradients
  cluster::Placement expert;  ///< ep ranks that exchange tokens
  cluster::Placement expert_tensor;
  cluster::Placement expert_data;  ///< edp ranks that share expert gradients
  cluster::Placement tensor_and_context;
  bool pipeline_crosses_nodes = false;  ///< a hop between neighbouring stages leaves the fast-link domain
  int pipeline_senders_per_domain = 1;  ///< GPUs of a domain that send such a hop at the same time
};

/// REQUIRES: dp() and edp() are whole. No allocation when the degrees and the domain divide one another.
Groups place_groups(const Layout& layout, const cluster::Cluster& cluster);

/// The groups {first + i·stride : 0 ≤ i < ranks} that tile `world` ranks. For parts of a group: an HSDP shard
/// group is place_group(tp, fsdp_shard, world, cluster), its replicas place_group(tp·fsdp_shard,
/// dp·cp/fsdp_shard, …). REQUIRES: stride·ranks divides world.
cluster::Placement place_group(int stride, int ranks, int world, const cluster::Cluster& cluster);

/// GPUs that a job of `world` GPUs uses in each fast-link domain. The domain itself where the job fills
/// domains or fits into one. Where a domain spans nodes and the job would leave a ragged last one, schedulers
/// spread it evenly (Slurm topology/block, `--segment`): 128 GPUs on NVL72 are 2 × 64, not 72 + 56. The
/// fewest domains, up to twice the least number, that give each the same whole number of nodes; when there is
/// none, domains are filled in order.
int gpus_used_per_domain(int world, const cluster::Cluster& cluster);

/// The order as it stands in reports, "tp-cp-ep-dp-pp".
std::string_view rank_order();

}  // namespace sextant::parallel
