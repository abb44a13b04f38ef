#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cluster/cluster.h"

namespace sextant::cluster {
namespace {

using testing::HasSubstr;

std::string file_with(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/sextant_cluster_load/" + name;
  base::write_file(path, text);
  return path;
}

std::string fault_of(const std::string& file) {
  try {
    load_cluster(file);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

TEST(LoadCluster, ACatalogueNameIsEnough) { EXPECT_EQ(load_cluster("h200:2x8").gpus(), 16); }

TEST(LoadCluster, OwnFormStartsFromAnAccelerator) {
  const Cluster cluster = load_cluster(file_with("lab.yaml", R"(
accelerator: H100
nodes: 3
node: {gpus: 4, nics: 1, nic_bandwidth_gb_per_s: 12.5}
network: {pod_gpus: 8, pod_bandwidth_gb_per_s: 5}
price_per_gpu_hour: 2.5
memory_safety_margin: 0.05
)"));
  EXPECT_EQ(cluster.name, "lab");
  EXPECT_EQ(cluster.accelerator.name, "H100-80");
  EXPECT_EQ(cluster.gpus(), 12);
  EXPECT_EQ(cluster.node.nics, 1);
  EXPECT_DOUBLE_EQ(cluster.node.nic_bandwidth_bytes_per_s, 12.5e9);
  EXPECT_DOUBLE_EQ(cluster.node.link_bandwidth_bytes_per_s, 450e9);
  EXPECT_EQ(cluster.network.pod_gpus, 8);
  EXPECT_DOUBLE_EQ(cluster.price_per_gpu_hour, 2.5);
  EXPECT_DOUBLE_EQ(cluster.memory_limit_bytes(), 79.1 * base::kGiB * 0.95);
}

TEST(LoadCluster, OwnFormDescribesAnUnknownAccelerator) {
  const Cluster cluster = load_cluster(file_with("own.yaml", R"(
name: Prototype
vendor: Acme
memory_gib: 100
memory_bandwidth_tb_per_s: 2
peak_tflops: {bf16: 500}
node: {gpus: 2, link_bandwidth_gb_per_s: 100}
)"));
  EXPECT_EQ(cluster.accelerator.name, "Prototype");
  EXPECT_EQ(cluster.accelerator.generation, Generation::kOther);
  EXPECT_DOUBLE_EQ(cluster.accelerator.peak(Precision::kBf16), 500e12);
  EXPECT_EQ(cluster.node.domain_gpus, 2);
}

TEST(LoadCluster, FaultsNameFileLineAndKey) {
  const std::string unknown = file_with("unknown.yaml", "accelerator: mi355x\nnode:\n  nic: 4\n");
  EXPECT_THAT(fault_of(unknown), HasSubstr(unknown + ":3: node.nic"));
  EXPECT_THAT(fault_of(file_with("zero.yaml", "accelerator: mi355x\nnodes: 0\n")), HasSubstr(":2: nodes"));
  EXPECT_THAT(
      fault_of(file_with("negative.yaml", "accelerator: mi355x\nnode: {nic_bandwidth_gb_per_s: -50}\n")),
      HasSubstr("node.nic_bandwidth_gb_per_s"));
  EXPECT_THAT(fault_of(file_with("typo.yaml", "accelerator: mi356x\n")), HasSubstr("did you mean"));
  EXPECT_THAT(fault_of(file_with("empty.yaml", "")), HasSubstr("empty.yaml"));
  EXPECT_THAT(fault_of(file_with("little.yaml", "name: X\nmemory_gib: 10\n")),
              HasSubstr("memory_bandwidth_tb_per_s"));
  EXPECT_THAT(fault_of(file_with("peak.yaml", "accelerator: h100\npeak_tflops: {int8: 5}\n")),
              HasSubstr("int8"));
  EXPECT_THAT(fault_of(testing::TempDir() + "/sextant_no_such_file.yaml"),
              HasSubstr("sextant_no_such_file.yaml"));
}

}  // namespace
}  // namespace sextant::cluster
