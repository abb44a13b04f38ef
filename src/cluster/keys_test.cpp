#include "cluster/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/units.h"
#include "config/document.h"

namespace sextant::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Cluster with(Cluster cluster, const std::string& assignment) {
  const auto [key, value] = config::parse_assignment(assignment);
  EXPECT_TRUE(set_cluster_key(cluster, key, value)) << assignment;
  return cluster;
}

TEST(ClusterKeys, EveryListedKeyIsKnown) {
  for (const auto& key : cluster_keys()) {
    Cluster cluster = cluster_from_name("mi355x:4x8");
    const auto value = key == "node_topology"        ? config::parse_assignment("k=mesh").second
                       : key == "gpu_initiated_rdma" ? config::parse_assignment("k=false").second
                       : key.starts_with("memory_s") ? config::parse_assignment("k=0.2").second
                                                     : config::parse_assignment("k=8").second;
    EXPECT_TRUE(set_cluster_key(cluster, key, value)) << key;
  }
  Cluster cluster = cluster_from_name("mi355x");
  EXPECT_FALSE(
      set_cluster_key(cluster, "tensor_model_parallel_size", config::parse_assignment("k=8").second));
}

TEST(ClusterKeys, SizeAndBandwidthsAreSet) {
  const Cluster usual = cluster_from_name("mi355x:4x8");
  EXPECT_EQ(with(usual, "num_nodes=8").gpus(), 64);
  EXPECT_EQ(with(usual, "gpus_per_node=4").gpus(), 16);
  EXPECT_DOUBLE_EQ(with(usual, "memory_safety_margin=0.05").memory_limit_bytes(), 287.98 * base::kGiB * 0.95);
  EXPECT_DOUBLE_EQ(with(usual, "node_bw=448").node.link_bandwidth_bytes_per_s, 448e9);
  EXPECT_DOUBLE_EQ(with(usual, "pod_bw=25").node.nic_bandwidth_bytes_per_s, 25e9);
  EXPECT_DOUBLE_EQ(with(usual, "pod_lat=5").node.nic_latency_s, 5e-6);
  EXPECT_EQ(with(usual, "pod_size=64").network.pod_gpus, 64);
}

TEST(ClusterKeys, NominalCapacityMeansWhatAProcessCanUse) {
  const auto capacity = [](const char* name, const char* size) {
    return with(cluster_from_name(name), std::string("hbm_capacity_gb=") + size);
  };
  EXPECT_DOUBLE_EQ(capacity("mi355x", "288").accelerator.memory_bytes, 287.98 * base::kGiB);
  EXPECT_DOUBLE_EQ(capacity("mi355x", "288.0").accelerator.memory_bytes, 287.98 * base::kGiB);
  EXPECT_DOUBLE_EQ(capacity("mi300x", "192").accelerator.memory_bytes, 191.98 * base::kGiB);
  EXPECT_DOUBLE_EQ(capacity("mi325x", "256").accelerator.memory_bytes, 255.98 * base::kGiB);
  EXPECT_DOUBLE_EQ(capacity("h100", "80").accelerator.memory_bytes, 79.1 * base::kGiB);
  EXPECT_DOUBLE_EQ(capacity("mi350x", "288").accelerator.memory_bytes, 287.98 * base::kGiB)
      << "the catalogue's 251.7 GiB is a virtual function";
  EXPECT_THAT(capacity("mi355x", "288").notes, IsEmpty());
}

TEST(ClusterKeys, AnyOtherCapacityIsGibAndNoted) {
  const Cluster smaller = with(cluster_from_name("mi355x"), "hbm_capacity_gb=192");
  EXPECT_DOUBLE_EQ(smaller.accelerator.memory_bytes, 192 * base::kGiB);
  EXPECT_THAT(smaller.notes, ElementsAre(HasSubstr("taken as 192 GiB")));
  const Cluster larger = with(cluster_from_name("mi300x"), "hbm_capacity_gb=288");
  EXPECT_THAT(larger.notes, ElementsAre(HasSubstr("more than the 191.98 GiB")));
}

TEST(ClusterKeys, ImpossibleFiguresAreRefused) {
  Cluster cluster = cluster_from_name("mi355x:4x8");
  for (const char* assignment :
       {"num_nodes=0", "num_nodes=-1", "num_nodes=2.5", "gpus_per_node=0", "hbm_capacity_gb=0",
        "hbm_capacity_gb=-288", "memory_safety_margin=1", "memory_safety_margin=-0.1", "node_bw=-1",
        "node_bw=0", "pod_bw=.inf", "pod_lat=-2", "nics_per_node=0", "node_topology=ring",
        "num_nodes=9999999999", "num_nodes=999999999"}) {
    const auto [key, value] = config::parse_assignment(assignment);
    EXPECT_THROW(set_cluster_key(cluster, key, value), base::UserError) << assignment;
  }
}

}  // namespace
}  // namespace sextant::cluster
