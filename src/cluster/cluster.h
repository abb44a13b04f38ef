// What a model runs on: accelerator, node, network, price. Every figure of the catalogue names its source.
//
// Bandwidths are nominal, one direction, bytes a second (decimal: 50 GB/s = 50e9); what software reaches of
// them is calibration (cost/efficiency.h), not hardware.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/precision.h"
#include "config/node.h"

namespace sextant::cluster {

enum class Generation { kAmpere, kHopper, kBlackwell, kCdna3, kCdna4, kOther };

struct Accelerator {
  std::string name;    ///< "MI355X"
  std::string vendor;  ///< "AMD", "NVIDIA"
  Generation generation = Generation::kOther;
  std::string family;       ///< whose calibration it borrows when it has none: "hopper", "cdna4"
  double memory_bytes = 0;  ///< usable by a process, exact: 287.98 GiB on an MI355X
  double memory_bandwidth_bytes_per_s = 0;
  /// Dense peak of each precision, FLOP/s; 0 = not supported.
  std::array<double, kPrecisions> peak_flops{};
  double vector_flops = 0;  ///< fp32 element-wise peak
  int compute_units = 0;    ///< SMs or CUs

  double peak(Precision precision) const { return peak_flops[static_cast<std::size_t>(precision)]; }
};

enum class NodeTopology {
  kSwitch,  ///< every pair at full link bandwidth (NVSwitch)
  kMesh,    ///< a direct link to each peer, link_bandwidth is the sum over peers (xGMI)
};

struct Node {
  int gpus = 8;
  /// GPUs joined by the fast links; larger than `gpus` where they span nodes (NVL72).
  int domain_gpus = 8;
  NodeTopology topology = NodeTopology::kSwitch;
  double link_bandwidth_bytes_per_s = 0;  ///< a GPU's, one direction, all its links together
  double link_latency_s = 0;
  int nics = 8;
  double nic_bandwidth_bytes_per_s = 0;  ///< one NIC, one direction
  double nic_latency_s = 0;
  bool gpu_initiated_rdma = true;  ///< the fabric lets a GPU start transfers (DeepEP, IBGDA)
  std::string host;                ///< "x86", "grace"
};

struct Network {
  int pod_gpus = 0;                      ///< GPUs under one non-blocking fabric level; 0 = all
  double pod_bandwidth_bytes_per_s = 0;  ///< per NIC between pods; 0 = the NIC's own
  double pod_latency_s = 0;
};

struct Cluster {
  std::string name;
  Accelerator accelerator;
  Node node;
  Network network;
  int nodes = 1;
  double price_per_gpu_hour = 0;       ///< 0 = unknown
  double memory_safety_margin = 0.10;  ///< fits means peak ≤ memory × (1 − margin)
  std::vector<std::string> sources;    ///< where the figures are from
  std::vector<std::string> notes;      ///< what was assumed or ignored while reading

  int gpus() const { return nodes * node.gpus; }
  double memory_limit_bytes() const { return accelerator.memory_bytes * (1.0 - memory_safety_margin); }
};

/// Names of accelerators in the catalogue, sorted.
std::vector<std::string> catalogue_names();

/// "mi355x:4x8" (nodes × GPUs a node), "mi355x:32" (GPUs in usual nodes) or "mi355x" (one node).
/// Throws base::UserError with the nearest names.
Cluster cluster_from_name(const std::string& name);

/// A Primus target-cluster YAML, a Primus hardware YAML (needs the accelerator by its file name or
/// `gpu_arch`), a Sextant cluster YAML, or a catalogue name. `roots`: folders tried for relative paths after
/// the file's own. Throws base::UserError.
Cluster load_cluster(const std::string& file_or_name, const std::vector<std::string>& roots = {});

/// Applies cluster keys of `--set` (num_nodes, gpus_per_node, …). Returns false when `key` is no cluster key.
bool set_cluster_key(Cluster& cluster, const std::string& key, const config::Node& value);
/// The keys that set_cluster_key knows.
std::vector<std::string> cluster_keys();

}  // namespace sextant::cluster
