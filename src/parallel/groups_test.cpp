#include "parallel/groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace sextant::parallel {
namespace {

cluster::Cluster machine(int gpus_per_node, int domain_gpus, int pod_gpus = 0) {
  cluster::Cluster cluster;
  cluster.node.gpus = gpus_per_node;
  cluster.node.domain_gpus = domain_gpus;
  cluster.network.pod_gpus = pod_gpus;
  return cluster;
}

using RankSets = std::vector<std::vector<int>>;

/// Groups along some axes of a rank grid, the slow way: give every rank its coordinates (fastest axis first),
/// and put those together that agree in all other axes.
RankSets enumerate(const std::vector<int>& sizes, const std::set<std::size_t>& axes) {
  int world = 1;
  for (const int size : sizes) world *= size;
  std::map<std::vector<int>, std::vector<int>> by_rest;
  for (int rank = 0; rank < world; ++rank) {
    std::vector<int> rest;
    int left = rank;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (!axes.contains(axis)) rest.push_back(left % sizes[axis]);
      left /= sizes[axis];
    }
    by_rest[rest].push_back(rank);
  }
  RankSets groups;
  for (const auto& [rest, ranks] : by_rest) groups.push_back(ranks);
  return groups;
}

/// What groups.h says a Placement is, by counting.
cluster::Placement counted(const RankSets& groups, int domain, int pod) {
  cluster::Placement placement;
  placement.ranks = static_cast<int>(groups[0].size());
  placement.ranks_per_domain = placement.ranks;
  placement.ranks_per_pod = placement.ranks;
  std::map<int, int> senders;
  for (const auto& group : groups) {
    std::map<int, int> in_domain;
    std::map<int, int> in_pod;
    for (const int rank : group) {
      ++in_domain[rank / domain];
      ++in_pod[pod > 0 ? rank / pod : 0];
    }
    placement.domains = std::max(placement.domains, static_cast<int>(in_domain.size()));
    for (const auto& [index, members] : in_domain) {
      placement.ranks_per_domain = std::min(placement.ranks_per_domain, members);
      if (in_domain.size() > 1) ++senders[index];
    }
    for (const auto& [index, members] : in_pod) {
      placement.ranks_per_pod = std::min(placement.ranks_per_pod, members);
    }
  }
  for (const auto& [index, count] : senders) {
    placement.senders_per_domain = std::max(placement.senders_per_domain, count);
  }
  return placement;
}

void expect_same(const cluster::Placement& placed, const cluster::Placement& expected,
                 const std::string& where) {
  EXPECT_EQ(placed.ranks, expected.ranks) << where;
  EXPECT_EQ(placed.ranks_per_domain, expected.ranks_per_domain) << where;
  EXPECT_EQ(placed.domains, expected.domains) << where;
  EXPECT_EQ(placed.ranks_per_pod, expected.ranks_per_pod) << where;
  EXPECT_EQ(placed.senders_per_domain, expected.senders_per_domain) << where;
}

void check_layout(const Layout& layout, const cluster::Cluster& cluster) {
  const int domain = gpus_used_per_domain(layout.world, cluster);
  const int pod_gpus = cluster.network.pod_gpus;
  const int pod =
      pod_gpus > cluster.node.domain_gpus ? pod_gpus / cluster.node.domain_gpus * domain : pod_gpus;
  const std::string where = "world " + std::to_string(layout.world) + " tp " + std::to_string(layout.tp) +
                            " cp " + std::to_string(layout.cp) + " pp " + std::to_string(layout.pp) + " ep " +
                            std::to_string(layout.ep) + " etp " + std::to_string(layout.etp) + " domain " +
                            std::to_string(domain);
  const Groups groups = place_groups(layout, cluster);
  const std::vector<int> dense = {layout.tp, layout.cp, layout.dp(), layout.pp};
  const std::vector<int> expert = {layout.etp, layout.ep, layout.edp(), layout.pp};
  expect_same(groups.tensor, counted(enumerate(dense, {0}), domain, pod), "tensor, " + where);
  expect_same(groups.context, counted(enumerate(dense, {1}), domain, pod), "context, " + where);
  expect_same(groups.data, counted(enumerate(dense, {1, 2}), domain, pod), "data, " + where);
  expect_same(groups.tensor_and_context, counted(enumerate(dense, {0, 1}), domain, pod), "tp-cp, " + where);
  expect_same(groups.expert_tensor, counted(enumerate(expert, {0}), domain, pod), "expert tensor, " + where);
  expect_same(groups.expert, counted(enumerate(expert, {1}), domain, pod), "expert, " + where);
  expect_same(groups.expert_data, counted(enumerate(expert, {2}), domain, pod), "expert data, " + where);

  std::map<int, int> senders;
  const bool wraps = layout.vpp > 1 && layout.schedule == pipeline::Algorithm::kInterleaved;
  for (const auto& ranks : enumerate(dense, {3})) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (i + 1 == ranks.size() && !wraps) continue;
      if (ranks[i] / domain != ranks[(i + 1) % ranks.size()] / domain) ++senders[ranks[i] / domain];
    }
  }
  int most = 0;
  for (const auto& [index, count] : senders) most = std::max(most, count);
  EXPECT_EQ(groups.pipeline_crosses_nodes, most > 0) << where;
  EXPECT_EQ(groups.pipeline_senders_per_domain, std::max(most, 1)) << where;
}

TEST(Groups, agree_with_ranks_counted_one_by_one) {
  int layouts = 0;
  for (const int domain : {4, 6, 8, 12}) {
    const cluster::Cluster cluster = machine(std::min(domain, 8), domain, 16);
    for (const int world : {12, 16, 24, 48, 64}) {
      for (const int tp : {1, 2, 3, 6, 8}) {
        for (const int cp : {1, 2, 3}) {
          for (const int pp : {1, 2, 3}) {
            for (const int ep : {1, 2, 6, 8}) {
              Layout layout{.tp = tp, .pp = pp, .cp = cp, .ep = ep, .etp = layouts % 2 + 1, .world = world};
              if (pp > 1 && layouts % 3 == 0) {
                layout.vpp = 2;
                layout.schedule =
                    layouts % 2 == 0 ? pipeline::Algorithm::kInterleaved : pipeline::Algorithm::kZeroBubbleV;
              }
              if (layout.dp() == 0 || layout.edp() == 0) continue;
              check_layout(layout, cluster);
              ++layouts;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(layouts, 300);
}

TEST(Groups, agree_with_counting_on_nvl72) {
  for (const int world : {64, 72, 128, 144, 152, 256}) {
    for (const int tp : {1, 2, 4, 8}) {
      for (const int ep : {1, 8, 32, 64}) {
        const Layout layout{.tp = tp, .ep = ep, .world = world};
        if (layout.dp() > 0 && layout.edp() > 0) check_layout(layout, machine(4, 72));
      }
    }
  }
}

// The layout of Megatron-LM's Llama-3 70B recipes: tensor parallelism fills the node, so data-parallel
// neighbours lie one node apart and each GPU of a node sends in a group of its own.
TEST(Groups, data_parallel_groups_of_tp8_have_one_member_a_node_and_eight_senders) {
  const Groups groups = place_groups({.tp = 8, .pp = 4, .world = 64}, machine(8, 8));
  EXPECT_TRUE(groups.tensor.inside_domain());
  EXPECT_EQ(groups.data.ranks_per_domain, 1);
  EXPECT_EQ(groups.data.domains, 2);
  EXPECT_EQ(groups.data.senders_per_domain, 8);
  EXPECT_TRUE(groups.pipeline_crosses_nodes);
  EXPECT_EQ(groups.pipeline_senders_per_domain, 8);
}

// Expert parallelism over a whole node leaves each rank its own expert gradient ring over one NIC, while the
// dense ring crosses once for all eight.
TEST(Groups, dense_and_expert_gradients_share_nics_differently) {
  const Groups groups = place_groups({.pp = 4, .ep = 8, .world = 64}, machine(8, 8));
  EXPECT_EQ(groups.data.ranks, 16);
  EXPECT_EQ(groups.data.ranks_per_domain, 8);
  EXPECT_EQ(groups.data.senders_per_domain, 1);
  EXPECT_EQ(groups.expert_data.ranks, 2);
  EXPECT_EQ(groups.expert_data.ranks_per_domain, 1);
  EXPECT_EQ(groups.expert_data.senders_per_domain, 8);
  EXPECT_TRUE(groups.expert.inside_domain());
}

TEST(Groups, uneven_groups_are_described_by_their_worst_lie) {
  // Tensor groups of 6 on nodes of 8: {0…5} inside, {6…11} as 2 + 4, {12…17} as 4 + 2, {18…23} inside.
  const Groups groups = place_groups({.tp = 6, .world = 24}, machine(8, 8));
  EXPECT_EQ(groups.tensor.ranks, 6);
  EXPECT_EQ(groups.tensor.domains, 2);
  EXPECT_EQ(groups.tensor.ranks_per_domain, 2);
  EXPECT_EQ(groups.tensor.senders_per_domain, 2) << "the middle node takes part in two groups that cross";
}

// Slurm's topology/block plugin places equal segments: 128 GPUs take 16 of the 18 trays of two racks.
TEST(Groups, jobs_spread_evenly_over_nvlink_domains_that_span_nodes) {
  const cluster::Cluster nvl72 = machine(4, 72);
  EXPECT_EQ(gpus_used_per_domain(64, nvl72), 72);
  EXPECT_EQ(gpus_used_per_domain(128, nvl72), 64);
  EXPECT_EQ(gpus_used_per_domain(144, nvl72), 72);
  EXPECT_EQ(gpus_used_per_domain(256, nvl72), 64);
  EXPECT_EQ(gpus_used_per_domain(1024, nvl72), 64);
  EXPECT_EQ(gpus_used_per_domain(76, nvl72), 72) << "19 trays divide by nothing: 72 + 4";
  EXPECT_EQ(gpus_used_per_domain(12, machine(8, 8)), 8);
  const Groups groups = place_groups({.ep = 64, .world = 256}, nvl72);
  EXPECT_TRUE(groups.expert.inside_domain());
  EXPECT_EQ(groups.expert_data.domains, 4);
  EXPECT_EQ(groups.expert_data.senders_per_domain, 64);
}

TEST(Groups, parts_of_a_group_can_be_placed) {
  // HSDP at TP 2: shards over 4 ranks inside a node of 8, replicas one node apart.
  const cluster::Cluster cluster = machine(8, 8);
  EXPECT_TRUE(place_group(2, 4, 32, cluster).inside_domain());
  const cluster::Placement replicas = place_group(8, 4, 32, cluster);
  EXPECT_EQ(replicas.domains, 4);
  EXPECT_EQ(replicas.senders_per_domain, 8);
}

TEST(Groups, the_rank_order_is_megatrons_default) { EXPECT_EQ(rank_order(), "tp-cp-ep-dp-pp"); }

}  // namespace
}  // namespace sextant::parallel
