#include "cluster/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/units.h"
#include "config/embedded_data.h"

namespace sextant::cluster {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string fault_of(const std::string& name) {
  try {
    cluster_from_name(name);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Catalogue, EveryFileLoadsAsOneSaneNode) {
  ASSERT_GE(catalogue().size(), 16U);
  for (const auto& entry : catalogue()) {
    EXPECT_EQ(cluster_from_name(entry.key).nodes, 1) << entry.key;
    EXPECT_FALSE(entry.usual.accelerator.family.empty()) << entry.key;
    EXPECT_GT(entry.usual.node.nic_bandwidth_bytes_per_s, 0) << entry.key;
  }
}

TEST(Catalogue, EveryFigureNamesItsSource) {
  for (const auto& entry : catalogue()) {
    const config::Node document = config::data_document("clusters/" + entry.key + ".yaml");
    const config::Node& sources = *document.find("sources");
    for (const char* figure : {"memory_gib", "nominal_memory_gb", "memory_bandwidth_tb_per_s", "peak_tflops",
                               "vector_tflops", "compute_units"}) {
      EXPECT_NE(sources.find(figure), nullptr) << entry.key << " " << figure;
    }
    for (const char* figure : {"gpus", "link_bandwidth_gb_per_s", "link_latency_us", "nics",
                               "nic_bandwidth_gb_per_s", "nic_latency_us", "gpu_initiated_rdma"}) {
      ASSERT_NE(document.find("node")->find(figure), nullptr) << entry.key << " " << figure;
      EXPECT_NE(sources.find(figure), nullptr) << entry.key << " " << figure;
    }
  }
}

TEST(Catalogue, NoTwoEntriesShareAName) {
  for (const auto& entry : catalogue()) {
    EXPECT_EQ(find_accelerator(entry.key), &entry);
    EXPECT_EQ(find_accelerator(entry.usual.accelerator.name), &entry);
    for (const auto& alias : entry.aliases) EXPECT_EQ(find_accelerator(alias), &entry) << alias;
  }
}

TEST(Catalogue, DensePeaksAreTheDataSheets) {
  const auto peak = [](const char* name, Precision precision) {
    return find_accelerator(name)->usual.accelerator.peak(precision) / base::kTera;
  };
  EXPECT_DOUBLE_EQ(peak("a100", Precision::kBf16), 312);
  EXPECT_DOUBLE_EQ(peak("a100", Precision::kFp8), 0);
  EXPECT_DOUBLE_EQ(peak("h100", Precision::kBf16), 989.5);
  EXPECT_DOUBLE_EQ(peak("h200", Precision::kFp8), 1979);
  EXPECT_DOUBLE_EQ(peak("b200", Precision::kNvfp4), 9000);
  EXPECT_DOUBLE_EQ(peak("gb300", Precision::kNvfp4), 14700);
  EXPECT_DOUBLE_EQ(peak("mi300x", Precision::kBf16), 1307.4);
  EXPECT_DOUBLE_EQ(peak("mi325x", Precision::kFp8), 2614.9);
  EXPECT_DOUBLE_EQ(peak("mi350x", Precision::kMxfp4), 9200);
  EXPECT_DOUBLE_EQ(peak("mi355x", Precision::kFp8), 5000);
}

TEST(Catalogue, NamesOfPublishedTablesAreKnown) {
  EXPECT_EQ(find_accelerator("H100-96GB(HBM2e,500W)")->key, "h100-96");
  EXPECT_EQ(find_accelerator("MI350X(VF 251.7GiB)")->key, "mi350x");
  EXPECT_EQ(find_accelerator("GH200-95GB")->key, "gh200");
  EXPECT_EQ(find_accelerator("A100-80GB")->key, "a100-80");
  EXPECT_EQ(find_accelerator("A100-40GB")->key, "a100-40");
  EXPECT_EQ(find_accelerator("MI355")->key, "mi355x");
}

TEST(ClusterFromName, NodesTimesGpus) {
  const Cluster cluster = cluster_from_name("mi355x:4x8");
  EXPECT_EQ(cluster.nodes, 4);
  EXPECT_EQ(cluster.gpus(), 32);
  EXPECT_EQ(cluster.name, "mi355x:4x8");
  EXPECT_DOUBLE_EQ(cluster.accelerator.memory_bytes, 287.98 * base::kGiB);
  EXPECT_DOUBLE_EQ(cluster.memory_limit_bytes(), 287.98 * base::kGiB * 0.9);
}

TEST(ClusterFromName, GpusAloneMeanUsualNodes) {
  EXPECT_EQ(cluster_from_name("MI355X:32").nodes, 4);
  EXPECT_EQ(cluster_from_name("gb200:72").nodes, 18) << "four GPUs a tray";
  EXPECT_EQ(cluster_from_name("gb200:72").node.domain_gpus, 72);
  EXPECT_EQ(cluster_from_name("h100").gpus(), 8);
}

TEST(ClusterFromName, PartOfAMeshNodeKeepsTheLinksThatAreLeft) {
  const Cluster cluster = cluster_from_name("mi355x:4");
  EXPECT_EQ(cluster.node.gpus, 4);
  EXPECT_EQ(cluster.node.domain_gpus, 4);
  EXPECT_EQ(cluster.node.nics, 4);
  EXPECT_DOUBLE_EQ(cluster.node.link_bandwidth_bytes_per_s, 3 * 76.8e9);
  EXPECT_THAT(cluster.notes, Contains(HasSubstr("3 peers")));
  EXPECT_DOUBLE_EQ(cluster_from_name("h100:4").node.link_bandwidth_bytes_per_s, 450e9)
      << "a switch keeps all";
}

TEST(ClusterFromName, FaultsSayWhatWouldBeRight) {
  EXPECT_THAT(fault_of("mi365x:4x8"), HasSubstr("did you mean"));
  EXPECT_THAT(fault_of("mi355x:12"), HasSubstr("8 or 16"));
  EXPECT_THAT(fault_of("mi355x:0x8"), HasSubstr("at least 1"));
  EXPECT_THAT(fault_of("mi355x:4x"), HasSubstr("NODESxGPUS"));
  EXPECT_THAT(fault_of("mi355x:-1"), HasSubstr("NODESxGPUS"));
  EXPECT_THAT(fault_of("mi355x:999999999999x8"), HasSubstr("NODESxGPUS"));
  EXPECT_THAT(fault_of("gb200:2x5"), HasSubstr("multiple"));
  EXPECT_THAT(fault_of("gaudi3"), HasSubstr("gaudi3"));
}

}  // namespace
}  // namespace sextant::cluster
