// Rank order and communication groups: who talks to whom, and where they lie.
//
// Megatron-LM's order (parallel_state.RankGenerator, "tp-cp-ep-dp-pp"): tensor ranks are neighbours, then context,
// then data, and pipeline ranks are furthest apart. Expert groups are laid out over the same ranks as
// "tp-cp-ep-dp-pp" with etp in tp's place and no cp: etp, then ep, then edp, then pp.
#pragma once

#include "cluster/cluster.h"
#include "cluster/placement.h"
#include "parallel/layout.h"

namespace sextant::parallel {

struct Groups {
  cluster::Placement tensor;
  cluster::Placement context;
  cluster::Placement data;               ///< dp·cp ranks that share dense gradients
  cluster::Placement expert;             ///< ep ranks that exchange tokens
  cluster::Placement expert_tensor;
  cluster::Placement expert_data;        ///< edp ranks that share expert gradients
  cluster::Placement tensor_and_context;
  bool pipeline_crosses_nodes = false;   ///< a hop between neighbouring stages leaves the fast-link domain
  int pipeline_senders_per_domain = 1;   ///< GPUs of a domain that send such a hop at the same time
};

/// REQUIRES: dp() and edp() are whole.
Groups place_groups(const Layout& layout, const cluster::Cluster& cluster);

/// The order as it stands in reports, "tp-cp-ep-dp-pp".
std::string_view rank_order();

}  // namespace sextant::parallel
