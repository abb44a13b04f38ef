#include <gtest/gtest.h>

#include "cost/network.h"
#include "cost/sample_machine.h"

namespace sextant::cost {
namespace {

using enum CollectiveKind;
using sample::placed;

constexpr CollectiveKind kKinds[] = {kAllReduce, kAllGather, kReduceScatter, kAllToAll, kSendReceive};

class CollectiveTime : public testing::Test {
 protected:
  double seconds(CollectiveKind kind, double bytes, const cluster::Placement& placement,
                 const Machine& machine) {
    return collective_s({kind, GroupKind::kTensor, bytes}, placement, machine);
  }
  cluster::Cluster cluster = sample::h100(64);
  cluster::Cluster mesh = sample::mi300x(64);
  Machine ideal{&cluster, sample::ideal()};
  Machine usual{&cluster, sample::usual()};
};

// The arithmetic of sgl-project/sglang issue 3172: hidden 12288, 96 layers, bf16, two GPUs joined by 109
// Gb/s. Tensor parallelism reduces twice a layer, a pipeline sends once.
TEST_F(CollectiveTime, tensor_parallelism_over_a_109_gbit_link_costs_what_the_report_says) {
  cluster.node.gpus = cluster.node.domain_gpus = cluster.node.nics = 1;
  cluster.node.nic_bandwidth_bytes_per_s = 109e9 / 8;
  cluster.node.nic_latency_s = 0;
  const auto step_s = [&](double tokens) {
    return collective_s({kAllReduce, GroupKind::kTensor, tokens * 12288 * 2, 192}, placed(2, 1, 1), ideal);
  };
  EXPECT_NEAR(step_s(32), 11.1e-3, 0.02 * 11.1e-3);
  EXPECT_NEAR(step_s(2048), 709e-3, 0.02 * 709e-3);
  EXPECT_NEAR(traffic({kAllReduce, GroupKind::kTensor, 32 * 12288 * 2, 192}, placed(2, 1, 1)).nic_bytes,
              151.0e6, 0.1e6);
  EXPECT_NEAR(hop_s(32 * 12288 * 2, true, 1, ideal), 0.0577e-3, 0.02 * 0.0577e-3);
  EXPECT_NEAR(hop_s(2048 * 12288 * 2, true, 1, ideal), 3.7e-3, 0.02 * 3.7e-3);
}

TEST_F(CollectiveTime, nothing_to_do_takes_no_time) {
  for (const auto kind : kKinds) {
    EXPECT_EQ(seconds(kind, 1e6, placed(1, 1), usual), 0);
    EXPECT_EQ(seconds(kind, 0, placed(8, 8), usual), 0);
    EXPECT_EQ(traffic({kind, GroupKind::kTensor, 1e6}, placed(1, 1)).link_bytes, 0);
  }
  EXPECT_EQ(hop_s(0, true, 8, usual), 0);
}

TEST_F(CollectiveTime, an_ideal_all_gather_moves_what_others_hold_over_the_links) {
  EXPECT_NEAR(seconds(kAllGather, 450e9, placed(8, 8), ideal), 7.0 / 8, 1e-5);
  EXPECT_NEAR(seconds(kAllReduce, 450e9, placed(8, 8), ideal), 2 * 7.0 / 8, 1e-4);
}

TEST_F(CollectiveTime, a_mesh_gives_a_group_only_the_links_between_its_members) {
  const Machine machine{&mesh, sample::ideal()};
  // Two of eight have one link of 64 GB/s; all eight use seven.
  EXPECT_NEAR(seconds(kAllGather, 64e9, placed(2, 2), machine), 1.0 / 2, 1e-5);
  EXPECT_NEAR(seconds(kAllGather, 448e9, placed(8, 8), machine), 7.0 / 8, 1e-5);
  EXPECT_NEAR(hop_s(64e9, false, 1, machine), 1.0, 1e-5) << "a hop uses one link";
  EXPECT_NEAR(hop_s(450e9, false, 1, ideal), 1.0, 1e-5) << "through a switch all of them";
  EXPECT_NEAR(seconds(kAllToAll, 448e9, placed(8, 8), machine), 7.0 / 8, 1e-5);
}

// Megatron-LM's usual lie: TP 8 fills the node, each of its eight data-parallel rings has one NIC; with TP 1
// one ring has all eight.
TEST_F(CollectiveTime, members_inside_a_domain_share_their_nics_for_one_crossing) {
  EXPECT_NEAR(seconds(kReduceScatter, 50e9, placed(4, 1), ideal), 3.0 / 4, 1e-4);
  EXPECT_NEAR(seconds(kReduceScatter, 400e9, placed(32, 8), ideal), 31.0 / 32, 1e-4);
  cluster.node.link_bandwidth_bytes_per_s = 200e9;
  EXPECT_NEAR(seconds(kReduceScatter, 400e9, placed(32, 8), ideal), 2 * 31.0 / 32, 1e-4)
      << "now the links are slower";
}

TEST_F(CollectiveTime, a_lone_sender_has_its_own_nic_only) {
  EXPECT_NEAR(hop_s(50e9, true, 1, ideal), 1.0, 1e-4);
  EXPECT_NEAR(hop_s(50e9, true, 8, ideal), 1.0, 1e-4);
  cluster.node.nics = 1;
  EXPECT_NEAR(hop_s(50e9, true, 1, ideal), 1.0, 1e-4);
  EXPECT_NEAR(hop_s(50e9, true, 8, ideal), 8.0, 1e-4) << "eight GPUs share one NIC";
  cluster.node.nics = 16;
  EXPECT_NEAR(hop_s(50e9, true, 8, ideal), 0.5, 1e-4) << "two NICs a GPU";
}

TEST_F(CollectiveTime, an_all_to_all_uses_links_and_nics_at_the_same_time) {
  // 16 ranks, 8 a node: 7/16 of the bytes over the links, 8/16 over each rank's own NIC.
  const double bytes = 16e9;
  EXPECT_NEAR(seconds(kAllToAll, bytes, placed(16, 8), ideal), 8e9 / 50e9, 2e-5);
  cluster.node.nic_bandwidth_bytes_per_s = 4500e9;
  EXPECT_NEAR(seconds(kAllToAll, bytes, placed(16, 8), ideal), 7e9 / 450e9, 2e-5);
}

// DeepEP: copies of a token for one node cross the network once. Eight copies over two nodes reach the other
// node with probability 1 − 1/256, so about one crossing instead of four.
TEST_F(CollectiveTime, a_deduplicating_dispatch_sends_a_token_once_to_each_domain) {
  Collective plain{kAllToAll, GroupKind::kExpert, 8 * 4096 * 7168 * 2.0};
  Collective once = plain;
  once.copies_per_token = 8;
  once.distinct_domains_per_token = 2 * (1 - 1.0 / 256) * 0.5;
  const auto at = placed(16, 8);
  EXPECT_NEAR(traffic(plain, at).nic_bytes, plain.bytes / 2, 1);
  EXPECT_NEAR(traffic(once, at).nic_bytes, plain.bytes / 8 * (255.0 / 256), 1);
  EXPECT_NEAR(traffic(once, at).link_bytes, plain.bytes * 7 / 8, 1) << "every copy ends with a link";
  EXPECT_LT(collective_s(once, at, usual), 0.5 * collective_s(plain, at, usual));
  EXPECT_EQ(collective_s(once, placed(8, 8), usual), collective_s(plain, placed(8, 8), usual))
      << "inside a node";
  // awslabs/awsome-distributed-ai PR 1144: without GPU-initiated RDMA the plain all-to-all is the faster one.
  cluster.node.gpu_initiated_rdma = false;
  EXPECT_GT(collective_s(once, at, usual), collective_s(plain, at, usual));
}

TEST_F(CollectiveTime, more_distinct_domains_than_copies_save_nothing) {
  Collective c{kAllToAll, GroupKind::kExpert, 1e9};
  c.copies_per_token = 1;
  c.distinct_domains_per_token = 1;
  EXPECT_EQ(traffic(c, placed(16, 8)).nic_bytes, 0.5e9);
}

TEST_F(CollectiveTime, groups_that_leave_their_pod_meet_its_bandwidth) {
  cluster.network.pod_bandwidth_bytes_per_s = 25e9;
  cluster::Placement at = placed(4, 1);
  EXPECT_NEAR(seconds(kAllGather, 50e9, at, ideal), 3.0 / 4, 1e-4);
  at.ranks_per_pod = 2;
  EXPECT_NEAR(seconds(kAllGather, 50e9, at, ideal), 2 * 3.0 / 4, 1e-4);
  // All-to-all: 3/4 leave the node, 2/4 the pod at half the rate.
  EXPECT_NEAR(seconds(kAllToAll, 50e9, at, ideal), 2 * 2.0 / 4, 1e-4);
}

TEST_F(CollectiveTime, an_all_reduce_is_its_two_halves_in_one_call) {
  for (const auto& at : {placed(8, 8), placed(4, 1), placed(64, 8), placed(512, 8), placed(256, 1)}) {
    for (const double bytes : {1e3, 1e6, 1e9}) {
      const double reduced = seconds(kAllReduce, bytes, at, usual);
      const double gathered = seconds(kAllGather, bytes, at, usual);
      const double scattered = seconds(kReduceScatter, bytes, at, usual);
      EXPECT_GE(reduced, std::max(gathered, scattered));
      EXPECT_NEAR(reduced, gathered + scattered - usual.efficiency.collective_latency_s, 1e-12);
    }
  }
}

TEST_F(CollectiveTime, small_messages_over_many_nodes_take_logarithmic_steps) {
  ideal.efficiency.collective_latency_s = 0;
  const double few = seconds(kAllGather, 8, placed(16, 1), ideal);
  const double many = seconds(kAllGather, 8, placed(256, 1), ideal);
  EXPECT_NEAR(few, 4 * 2e-6, 1e-8);
  EXPECT_NEAR(many, 8 * 2e-6, 1e-8);
}

TEST_F(CollectiveTime, half_the_bandwidth_is_reached_at_the_half_message) {
  ideal.efficiency.half_message_bytes = 3.3e6;
  cluster.node.link_latency_s = 0;
  EXPECT_NEAR(seconds(kAllGather, 3.3e6, placed(8, 8), ideal), 2 * 3.3e6 * 7 / 8 / 450e9, 1e-12);
}

TEST_F(CollectiveTime, grows_with_bytes_and_with_domains_and_with_leaving_one) {
  for (const auto kind : kKinds) {
    double before = 0;
    for (double bytes = 1e3; bytes < 1e10; bytes *= 3) {
      const double now = seconds(kind, bytes, placed(64, 8), usual);
      EXPECT_GT(now, before);
      before = now;
    }
    for (const int inside : {1, 2, 4, 8}) {
      double fewer = 0;
      for (int domains = 2; domains <= 64; domains *= 2) {
        const double now = seconds(kind, 1e8, placed(inside * domains, inside), usual);
        EXPECT_GE(now, fewer);
        fewer = now;
      }
    }
    double smaller = 0;
    for (int ranks = 2; ranks <= 8; ++ranks) {
      const double now = seconds(kind, 1e8, placed(ranks, ranks), usual);
      EXPECT_GE(now, smaller) << "through a switch";
      smaller = now;
    }
    for (const int ranks : {2, 4, 8}) {
      for (int inside = 1; inside < ranks; inside *= 2) {
        for (const double bytes : {1e3, 1e6, 1e9}) {
          EXPECT_GE(seconds(kind, bytes, placed(ranks, inside), usual),
                    seconds(kind, bytes, placed(ranks, ranks), usual));
        }
      }
    }
  }
}

TEST_F(CollectiveTime, never_beats_the_nominal_bandwidth) {
  usual.efficiency.all_to_all_link_fraction = 2.0;
  for (const auto kind : kKinds) {
    for (const auto& at : {placed(8, 8), placed(16, 8), placed(32, 2), placed(64, 1)}) {
      const double bytes = 1e9;
      const Traffic moved = traffic({kind, GroupKind::kTensor, bytes}, at);
      EXPECT_GE(seconds(kind, bytes, at, usual), moved.link_bytes / 450e9);
      EXPECT_GE(seconds(kind, bytes, at, usual), moved.nic_bytes / 50e9);
    }
  }
}

TEST_F(CollectiveTime, traffic_is_what_is_priced) {
  // NIC-bound rings: per-rank NIC bytes over one rank's NIC.
  for (const int inside : {1, 2, 4, 8}) {
    const Collective c{kAllReduce, GroupKind::kData, 1e10};
    const auto at = placed(4 * inside, inside);
    cluster.node.link_latency_s = cluster.node.nic_latency_s = 0;
    EXPECT_NEAR(collective_s(c, at, ideal), traffic(c, at).nic_bytes / 50e9, 1e-9);
  }
  const Collective c{kAllReduce, GroupKind::kTensor, 1e10};
  EXPECT_NEAR(collective_s(c, placed(8, 8), ideal), traffic(c, placed(8, 8)).link_bytes / 450e9, 1e-9);
}

TEST_F(CollectiveTime, count_repeats_time_and_traffic) {
  Collective c{kAllGather, GroupKind::kTensor, 1e7};
  const double once = collective_s(c, placed(8, 8), usual);
  c.count = 5;
  EXPECT_DOUBLE_EQ(collective_s(c, placed(8, 8), usual), 5 * once);
  EXPECT_DOUBLE_EQ(traffic(c, placed(8, 8)).link_bytes, 5 * 1e7 * 7 / 8);
}

}  // namespace
}  // namespace sextant::cost
