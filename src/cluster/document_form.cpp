#include "cluster/document_form.h"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "cluster/sanity.h"

namespace sextant::cluster {
namespace {

constexpr double kMicrosecond = 1e-6;

constexpr std::array<std::pair<std::string_view, Generation>, 6> kGenerations = {{
    {"ampere", Generation::kAmpere},
    {"hopper", Generation::kHopper},
    {"blackwell", Generation::kBlackwell},
    {"cdna3", Generation::kCdna3},
    {"cdna4", Generation::kCdna4},
    {"other", Generation::kOther},
}};

Generation read_generation(const config::Node& node) {
  const std::string text = base::lower_case(config::as_text(node));
  std::vector<std::string> names;
  for (const auto& [name, generation] : kGenerations) {
    if (text == name) return generation;
    names.emplace_back(name);
  }
  throw base::UserError(node.position, node.path,
                        fmt::format("'{}' is no generation of accelerators that Sextant knows; use one of {}",
                                    text, base::join(names, ", ")));
}

void read_peaks(const config::Node& node, Accelerator& accelerator) {
  for (const auto& [key, value] : config::require_mapping(node).entries) {
    const auto precision = precision_from_name(key);
    if (!precision) {
      throw base::UserError(
          value.position, value.path,
          fmt::format("'{}' is no precision; use fp32, bf16, fp16, fp8, mxfp8, mxfp4 or nvfp4", key));
    }
    accelerator.peak_flops[static_cast<std::size_t>(*precision)] = positive_number(value) * base::kTera;
  }
}

void read_accelerator(const config::Node& document, Accelerator& accelerator) {
  if (const auto* node = document.find_set("vendor")) accelerator.vendor = config::as_text(*node);
  if (const auto* node = document.find_set("generation")) accelerator.generation = read_generation(*node);
  if (const auto* node = document.find_set("family")) accelerator.family = config::as_text(*node);
  if (const auto* node = document.find_set("memory_gib")) {
    accelerator.memory_bytes = positive_number(*node) * base::kGiB;
  }
  if (const auto* node = document.find_set("memory_bandwidth_tb_per_s")) {
    accelerator.memory_bandwidth_bytes_per_s = positive_number(*node) * base::kTera;
  }
  if (const auto* node = document.find_set("peak_tflops")) read_peaks(*node, accelerator);
  if (const auto* node = document.find_set("vector_tflops")) {
    accelerator.vector_flops = positive_number(*node) * base::kTera;
  }
  if (const auto* node = document.find_set("compute_units"))
    accelerator.compute_units = positive_count(*node);
}

void read_node(const config::Node& document, Cluster& cluster) {
  config::refuse_unknown_keys(
      config::require_mapping(document),
      {"gpus", "domain_gpus", "topology", "link_bandwidth_gb_per_s", "link_latency_us", "nics",
       "nic_bandwidth_gb_per_s", "nic_latency_us", "gpu_initiated_rdma", "host"});
  if (const auto* node = document.find_set("gpus")) resize_node(cluster, positive_count(*node));
  Node& machine = cluster.node;
  if (const auto* node = document.find_set("domain_gpus")) machine.domain_gpus = positive_count(*node);
  if (const auto* node = document.find_set("topology")) machine.topology = read_topology(*node);
  if (const auto* node = document.find_set("link_bandwidth_gb_per_s")) {
    machine.link_bandwidth_bytes_per_s = positive_number(*node) * base::kGB;
  }
  if (const auto* node = document.find_set("link_latency_us")) {
    machine.link_latency_s = non_negative_number(*node) * kMicrosecond;
  }
  if (const auto* node = document.find_set("nics")) machine.nics = positive_count(*node);
  if (const auto* node = document.find_set("nic_bandwidth_gb_per_s")) {
    machine.nic_bandwidth_bytes_per_s = positive_number(*node) * base::kGB;
  }
  if (const auto* node = document.find_set("nic_latency_us")) {
    machine.nic_latency_s = non_negative_number(*node) * kMicrosecond;
  }
  if (const auto* node = document.find_set("gpu_initiated_rdma"))
    machine.gpu_initiated_rdma = config::as_boolean(*node);
  if (const auto* node = document.find_set("host")) machine.host = config::as_text(*node);
}

void read_network(const config::Node& document, Network& network) {
  config::refuse_unknown_keys(config::require_mapping(document),
                              {"pod_gpus", "pod_bandwidth_gb_per_s", "pod_latency_us"});
  if (const auto* node = document.find_set("pod_gpus")) network.pod_gpus = non_negative_count(*node);
  if (const auto* node = document.find_set("pod_bandwidth_gb_per_s")) {
    network.pod_bandwidth_bytes_per_s = positive_number(*node) * base::kGB;
  }
  if (const auto* node = document.find_set("pod_latency_us")) {
    network.pod_latency_s = non_negative_number(*node) * kMicrosecond;
  }
}

}  // namespace

NodeTopology read_topology(const config::Node& node) {
  const std::string text = base::lower_case(config::as_text(node));
  if (text == "switch") return NodeTopology::kSwitch;
  if (text == "mesh") return NodeTopology::kMesh;
  throw base::UserError(
      node.position, node.path,
      fmt::format("'{}' is no topology of a node; use 'switch' (every pair at full bandwidth) or "
                  "'mesh' (a direct link to each peer)",
                  text));
}

void read_document_form(const config::Node& document, Cluster& cluster) {
  config::refuse_unknown_keys(
      config::require_mapping(document),
      {"accelerator", "name", "aliases", "vendor", "generation", "family", "memory_gib", "nominal_memory_gb",
       "nominal_memory_gib", "memory_bandwidth_tb_per_s", "peak_tflops", "vector_tflops", "compute_units",
       "node", "network", "nodes", "price_per_gpu_hour", "memory_safety_margin", "sources"});
  if (const auto* node = document.find_set("name")) {
    cluster.name = config::as_text(*node);
    if (document.find_set("accelerator") == nullptr) cluster.accelerator.name = cluster.name;
  }
  read_accelerator(document, cluster.accelerator);
  if (const auto* node = document.find_set("node")) read_node(*node, cluster);
  if (const auto* node = document.find_set("network")) read_network(*node, cluster.network);
  if (const auto* node = document.find_set("nodes")) cluster.nodes = positive_count(*node);
  if (const auto* node = document.find_set("price_per_gpu_hour"))
    cluster.price_per_gpu_hour = non_negative_number(*node);
  if (const auto* node = document.find_set("memory_safety_margin"))
    cluster.memory_safety_margin = share_below_one(*node);
  if (const auto* node = document.find_set("sources")) {
    for (const auto& [figure, source] : config::require_mapping(*node).entries) {
      cluster.sources.push_back(fmt::format("{}: {}", figure, config::as_text(source)));
    }
  }
}

}  // namespace sextant::cluster
