#include "training/exposed.h"

#include <gtest/gtest.h>

#include "training/projection_jobs.h"

namespace sextant::training {
namespace {

using parallel::Sharding;

struct Machine {
  explicit Machine(const std::string& name) : cluster(cluster::cluster_from_name(name)) {
    machine.cluster = &cluster;
    machine.efficiency = cost::efficiency_for("megatron-core", cluster.accelerator);
  }
  Buckets buckets(const parallel::Layout& layout) const {
    return place_buckets(layout, parallel::place_groups(layout, cluster), cluster);
  }
  DataParallelTime time(const layers::RankParameters& parameters, const parallel::Layout& layout) const {
    return data_parallel_s(parameters, layout, {}, buckets(layout), machine);
  }

  cluster::Cluster cluster;
  cost::Machine machine;
};

parallel::Layout layout_of(int world) {
  parallel::Layout layout;
  layout.world = world;
  layout.global_batch = world;
  layout.sharding = Sharding::kDistributedOptimizer;
  return layout;
}

layers::RankParameters dense(double count) { return {.dense = count}; }
layers::RankParameters experts(double count) { return {.expert = count}; }

TEST(Exposed, IsAtLeastTheFloorAndAtLeastWhatTheWindowLeaves) {
  cost::Efficiency efficiency;
  efficiency.data_parallel_exposed_floor = 0.12;
  EXPECT_DOUBLE_EQ(exposed_s(10, 100, efficiency), 1.2);
  EXPECT_DOUBLE_EQ(exposed_s(10, 4, efficiency), 6);
  EXPECT_DOUBLE_EQ(exposed_s(10, 0, efficiency), 10);
}

TEST(Exposed, ChunksFinishTheirGradientsEarly) {
  parallel::Layout layout = layout_of(8);
  layout.global_batch = 512;
  EXPECT_DOUBLE_EQ(overlap_microbatches(layout), 1);
  layout.pp = 8;
  EXPECT_DOUBLE_EQ(overlap_microbatches(layout), 1);
  layout.vpp = 4;
  EXPECT_DOUBLE_EQ(overlap_microbatches(layout), 6);  // 8 · 3 / 4
  layout.global_batch = 2;
  EXPECT_DOUBLE_EQ(overlap_microbatches(layout), 2);  // there are no more
}

TEST(Exposed, ReplicasReduceWhatShardsScatterAndGather) {
  const Machine h100("h100-80:1x8");
  parallel::Layout layout = layout_of(8);
  const DataParallelTime sharded = h100.time(dense(1e9), layout);
  layout.sharding = Sharding::kNone;
  const DataParallelTime replicated = h100.time(dense(1e9), layout);
  EXPECT_EQ(replicated.parameter_s, 0);
  // Gradients are 4 bytes an element and parameters 2: an all-reduce is two scatters of the gradients.
  EXPECT_NEAR(replicated.gradient_s / sharded.gradient_s, 2, 0.01);
  EXPECT_NEAR(sharded.gradient_s / sharded.parameter_s, 2, 0.01);
}

TEST(Exposed, OneRankHasNoTraffic) {
  const Machine h100("h100-80:1x8");
  parallel::Layout layout = layout_of(8);
  layout.tp = 8;
  const DataParallelTime time = h100.time(dense(1e9), layout);
  EXPECT_EQ(time.gradient_s, 0);
  EXPECT_EQ(time.parameter_s, 0);
}

TEST(Exposed, ExpertsSpreadOverANodeCrossTheNetworkThroughOneNicEach) {
  // EP 8 on nodes of 8: copies of an expert lie on different nodes, one GPU each; dense copies fill the nodes
  // and enter each through all eight NICs.
  const Machine h100("h100-80:8x8");
  parallel::Layout layout = layout_of(64);
  layout.ep = 8;
  const Buckets buckets = h100.buckets(layout);
  EXPECT_EQ(buckets.expert.shard.ranks, 8);
  EXPECT_EQ(buckets.expert.shard.ranks_per_domain, 1);
  EXPECT_EQ(buckets.dense.shard.ranks_per_domain, 8);
  const double of_experts = h100.time(experts(1e9), layout).gradient_s;
  const double of_dense = h100.time(dense(1e9), layout).gradient_s;
  EXPECT_GT(of_experts, 4 * of_dense);
}

TEST(Exposed, HybridShardingKeepsGathersInTheShardGroup) {
  const Machine h100("h100-80:4x8");
  parallel::Layout layout = layout_of(32);
  layout.sharding = Sharding::kFsdp2;
  layout.fsdp_shard = 8;
  const Buckets buckets = h100.buckets(layout);
  EXPECT_EQ(buckets.dense.shard.ranks, 8);
  EXPECT_EQ(buckets.dense.shard.domains, 1);
  EXPECT_EQ(buckets.dense.replica.ranks, 4);
  EXPECT_EQ(buckets.dense.replica.domains, 4);
}

TEST(Exposed, FsdpMovesItsLayersEachMicrobatchAndNothingAtTheEnd) {
  const Machine h100("h100-80:2x8");
  parallel::Layout layout = layout_of(16);
  layout.sharding = Sharding::kFsdp2;
  const double twice = sharded_layer_s(dense(1e9), layout, {}, h100.buckets(layout), h100.machine);
  layout.fsdp_reshard_after_forward = false;
  const double once = sharded_layer_s(dense(1e9), layout, {}, h100.buckets(layout), h100.machine);
  // Two gathers of 2 bytes and a scatter of 4, against one gather.
  EXPECT_NEAR(twice / once, 8.0 / 6.0, 0.01);
  EXPECT_EQ(h100.time(dense(1e9), layout).gradient_s, 0);
  EXPECT_EQ(h100.time(dense(1e9), layout).parameter_s, 0);
  layout.sharding = Sharding::kDistributedOptimizer;
  EXPECT_EQ(sharded_layer_s(dense(1e9), layout, {}, h100.buckets(layout), h100.machine), 0);
}

TEST(Exposed, ParametersKeptInFp8TravelInOneByte) {
  parallel::Layout layout = layout_of(8);
  layers::RankParameters parameters{.dense = 100, .expert = 50, .embedding = 10, .low_precision = 140};
  EXPECT_DOUBLE_EQ(parameter_bytes(parameters, layout).dense, 220);
  EXPECT_DOUBLE_EQ(parameter_bytes(parameters, layout).expert, 100);
  layout.fp8_parameters = true;
  // All 50 of the experts and 90 of the 110 others are in low precision.
  EXPECT_DOUBLE_EQ(parameter_bytes(parameters, layout).expert, 50);
  EXPECT_DOUBLE_EQ(parameter_bytes(parameters, layout).dense, 130);
}

TEST(Optimizer, MovesItsBytesOverMemoryAndLessWhenSharded) {
  const Machine h100("h100-80:1x8");
  const model::Model model = gpt(2, 1024, 16);
  parallel::Layout layout = layout_of(8);
  layout.sharding = Sharding::kNone;
  const double whole = optimizer_s(dense(1e9), layout, model, h100.buckets(layout), h100.machine);
  const cost::Efficiency& e = h100.machine.efficiency;
  EXPECT_DOUBLE_EQ(whole,
                   1e9 * e.optimizer_bytes /
                       (h100.cluster.accelerator.memory_bandwidth_bytes_per_s * e.element_wise_fraction));
  layout.sharding = Sharding::kDistributedOptimizer;
  EXPECT_DOUBLE_EQ(optimizer_s(dense(1e9), layout, model, h100.buckets(layout), h100.machine), whole / 8);
  // State on the host crosses PCIe and a slower memory.
  layout.optimizer.offload_fraction = 1.0;
  EXPECT_GT(optimizer_s(dense(1e9), layout, model, h100.buckets(layout), h100.machine), whole);
}

}  // namespace
}  // namespace sextant::training
