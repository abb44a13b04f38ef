#include "cluster/primus_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"

namespace sextant::cluster {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string root() { return testing::TempDir() + "/sextant_primus_form"; }

std::string file_with(const std::string& name, const std::string& text) {
  base::write_file(root() + "/" + name, text);
  return root() + "/" + name;
}

// The fields of AMD-AGI/Primus examples/agents/tuning_agent/target_cluster_mi355x_4nodes.yaml.
constexpr const char* kTarget = R"(
target_cluster:
  name: mi355x_4nodes
  num_nodes: 4
  gpus_per_node: 8
  gpu_arch: mi355x
  hardware_config: hardware/mi355x.yaml
available_for_benchmark: {has_gpu: true, benchmark_gpus: 8, benchmark_arch: mi355x}
optimization:
  objective: tokens_per_s_per_gpu
  memory_safety_margin: 0.10
  hbm_capacity_gb: 288.0
  budget: {max_rounds: 0}
)";
constexpr const char* kHardware = R"(
hardware_config:
  node_bw: 500.0
  node_lat: 0.5
  pod_bw: 40.0
  pod_lat: 3.0
  cluster_bw: 20.0
  cluster_lat: 9.0
  node_size: 8
  pod_size: 64
  nics_per_node: 4
  switch_topology: false
  node_topology: "switch"
  vector_flops: 150.0e12
)";

TEST(PrimusTargetCluster, ReadsEveryFieldWithItsUnit) {
  file_with("beside/hardware/mi355x.yaml", kHardware);
  const Cluster cluster = load_cluster(file_with("beside/target.yaml", kTarget));
  EXPECT_EQ(cluster.name, "mi355x_4nodes");
  EXPECT_EQ(cluster.gpus(), 32);
  EXPECT_DOUBLE_EQ(cluster.accelerator.memory_bytes, 287.98 * base::kGiB);
  EXPECT_DOUBLE_EQ(cluster.accelerator.vector_flops, 150e12);
  EXPECT_DOUBLE_EQ(cluster.node.link_bandwidth_bytes_per_s, 500e9);
  EXPECT_DOUBLE_EQ(cluster.node.link_latency_s, 0.5e-6);
  EXPECT_DOUBLE_EQ(cluster.node.nic_bandwidth_bytes_per_s, 40e9);
  EXPECT_DOUBLE_EQ(cluster.node.nic_latency_s, 3e-6);
  EXPECT_EQ(cluster.node.nics, 4);
  EXPECT_EQ(cluster.node.topology, NodeTopology::kSwitch);
  EXPECT_DOUBLE_EQ(cluster.network.pod_bandwidth_bytes_per_s, 20e9);
  EXPECT_DOUBLE_EQ(cluster.network.pod_latency_s, 9e-6);
  EXPECT_EQ(cluster.network.pod_gpus, 64);
  EXPECT_THAT(cluster.notes, IsEmpty());
}

TEST(PrimusTargetCluster, HardwareFileIsFoundUnderARoot) {
  file_with("roots/second/hardware/mi355x.yaml", kHardware);
  const std::string target = file_with("elsewhere/target.yaml", kTarget);
  EXPECT_THROW(load_cluster(target), base::UserError);
  const Cluster cluster = load_cluster(target, {root() + "/roots/first", root() + "/roots/second"});
  EXPECT_DOUBLE_EQ(cluster.node.nic_bandwidth_bytes_per_s, 40e9);
}

TEST(PrimusTargetCluster, HardwareFileIsFoundUnderThePrimusRootAboveTheFile) {
  file_with("primus_root/primus/configs/keep.yaml", "{}");
  file_with("primus_root/hardware/mi355x.yaml", kHardware);
  const Cluster cluster = load_cluster(file_with("primus_root/examples/agents/target.yaml", kTarget));
  EXPECT_DOUBLE_EQ(cluster.node.nic_bandwidth_bytes_per_s, 40e9);
}

TEST(PrimusTargetCluster, DefaultsArePrimusOwnExceptTheMemory) {
  const Cluster cluster = load_cluster(file_with("short.yaml", "target_cluster: {hardware_config: null}\n"));
  EXPECT_EQ(cluster.accelerator.name, "MI355X");
  EXPECT_EQ(cluster.name, "unnamed");
  EXPECT_EQ(cluster.gpus(), 8);
  EXPECT_DOUBLE_EQ(cluster.accelerator.memory_bytes, 287.98 * base::kGiB) << "not Primus' default of 192";
  EXPECT_DOUBLE_EQ(cluster.memory_safety_margin, 0.10);
}

TEST(PrimusTargetCluster, UnknownKeysAreNotes) {
  const Cluster cluster = load_cluster(file_with("extra.yaml", R"(
target_cluster: {gpu_arch: mi300x, num_node: 4, gpu_clock_mhz: 2100}
optimization: {hbm_capacity_gb: 150}
colour: red
)"));
  EXPECT_EQ(cluster.nodes, 1);
  EXPECT_THAT(cluster.notes, Contains(HasSubstr("target_cluster.num_node")));
  EXPECT_THAT(cluster.notes, Contains(HasSubstr("num_nodes")));
  EXPECT_THAT(cluster.notes, Contains(HasSubstr("gpu_clock_mhz")));
  EXPECT_THAT(cluster.notes, Contains(HasSubstr("colour")));
  EXPECT_THAT(cluster.notes, Contains(HasSubstr("150 GiB")));
}

TEST(PrimusTargetCluster, FaultsAreLocated) {
  const auto fault_of = [](const std::string& name, const std::string& text) -> std::string {
    try {
      load_cluster(file_with(name, text));
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(fault_of("a.yaml", "target_cluster:\n  num_nodes: 0\n"),
              HasSubstr("a.yaml:2: target_cluster.num_nodes"));
  EXPECT_THAT(fault_of("b.yaml", "target_cluster:\n  gpu_arch: mi356x\n"), HasSubstr("did you mean"));
  EXPECT_THAT(fault_of("c.yaml", "target_cluster:\n  hardware_config: no/such.yaml\n"),
              HasSubstr("no/such.yaml"));
  EXPECT_THAT(fault_of("d.yaml", "target_cluster: 4\n"), HasSubstr("target_cluster"));
  EXPECT_THAT(fault_of("e.yaml", "target_cluster: {}\noptimization:\n  memory_safety_margin: 10\n"),
              HasSubstr("e.yaml:3: optimization.memory_safety_margin"));
}

TEST(PrimusHardware, TheFileNameOrAKeyNamesTheAccelerator) {
  const Cluster named = load_cluster(file_with("mi325x.yaml", kHardware));
  EXPECT_EQ(named.accelerator.name, "MI325X");
  EXPECT_DOUBLE_EQ(named.node.link_bandwidth_bytes_per_s, 500e9);
  EXPECT_EQ(named.gpus(), 8);
  const Cluster keyed = load_cluster(file_with("lab.yaml", std::string("gpu_arch: mi300x") + kHardware));
  EXPECT_EQ(keyed.accelerator.name, "MI300X");
  EXPECT_THROW(load_cluster(file_with("machine.yaml", kHardware)), base::UserError);
}

TEST(PrimusHardware, SoftwareFiguresAndUnknownKeysAreNotes) {
  const Cluster cluster = load_cluster(
      file_with("more/mi355x.yaml", std::string(kHardware) + "  bw_eff: 0.7\n  warp_speed: 9\n"));
  EXPECT_THAT(cluster.notes, Contains(HasSubstr("'bw_eff' is not used")));
  EXPECT_THAT(cluster.notes, Contains(HasSubstr("'warp_speed' is not a key")));
  const std::string negative = file_with("bad/mi355x.yaml", "hardware_config:\n  pod_bw: -50\n");
  EXPECT_THROW(load_cluster(negative), base::UserError);
}

TEST(PrimusTargetCluster, TheShippedExampleLoads) {
  const char* reference = std::getenv("SEXTANT_REFERENCE_DATA");
  if (reference == nullptr) GTEST_SKIP() << "SEXTANT_REFERENCE_DATA is not set";
  const std::string primus = std::string(reference) + "/data/primus/examples/";
  const Cluster cluster = load_cluster(primus + "agents/tuning_agent/target_cluster_mi355x_4nodes.yaml");
  EXPECT_EQ(cluster.gpus(), 32);
  EXPECT_DOUBLE_EQ(cluster.node.link_bandwidth_bytes_per_s, 537.6e9);
  EXPECT_DOUBLE_EQ(cluster.accelerator.memory_bytes, 287.98 * base::kGiB);
  EXPECT_THAT(cluster.notes, Not(Contains(HasSubstr("ignored"))));
  for (const char* name : {"mi300x", "mi325x", "mi350x", "mi355x"}) {
    const Cluster hardware = load_cluster(primus + "hardware_configs/" + name + ".yaml");
    EXPECT_THAT(hardware.notes, IsEmpty()) << name;
  }
}

}  // namespace
}  // namespace sextant::cluster
