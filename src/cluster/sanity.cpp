#include "cluster/sanity.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace sextant::cluster {
namespace {

[[noreturn]] void refuse(const config::Node& node, const char* wanted) {
  throw base::UserError(node.position, node.path,
                        fmt::format("{} is impossible here; give {}", config::as_text(node), wanted));
}

int count(const config::Node& node, std::int64_t lowest, const char* wanted) {
  const std::int64_t value = config::as_integer(node);
  if (value < lowest || value > std::numeric_limits<int>::max()) refuse(node, wanted);
  return static_cast<int>(value);
}

}  // namespace

double positive_number(const config::Node& node) {
  const double value = config::as_number(node);
  if (!(value > 0) || !std::isfinite(value)) refuse(node, "a number above zero");
  return value;
}

double non_negative_number(const config::Node& node) {
  const double value = config::as_number(node);
  if (!(value >= 0) || !std::isfinite(value)) refuse(node, "zero or a number above");
  return value;
}

int positive_count(const config::Node& node) { return count(node, 1, "a whole number from 1"); }

int non_negative_count(const config::Node& node) { return count(node, 0, "a whole number from 0"); }

double share_below_one(const config::Node& node) {
  const double value = config::as_number(node);
  if (!(value >= 0) || !(value < 1)) refuse(node, "a share from 0 to below 1, such as 0.1");
  return value;
}

void require_sane(const Cluster& cluster, const base::SourcePosition& where) {
  const auto demand = [&](bool holds, const std::string& fault) {
    if (!holds) throw base::UserError(where, "", fmt::format("cluster '{}': {}", cluster.name, fault));
  };
  const Node& node = cluster.node;
  demand(cluster.nodes >= 1 && node.gpus >= 1, "it has no GPUs; give nodes and GPUs a node from 1");
  demand(static_cast<std::int64_t>(cluster.nodes) * node.gpus <= std::numeric_limits<int>::max(),
         "it has more than 2,147,483,647 GPUs; give fewer nodes");
  demand(cluster.accelerator.memory_bytes > 0, "its accelerator has no memory; give memory_gib");
  demand(cluster.accelerator.memory_bandwidth_bytes_per_s > 0,
         "its accelerator has no memory bandwidth; give memory_bandwidth_tb_per_s");
  demand(cluster.accelerator.peak(Precision::kBf16) > 0 || cluster.accelerator.peak(Precision::kFp16) > 0,
         "its accelerator has no 16-bit peak; give peak_tflops with bf16 or fp16");
  demand(node.gpus == 1 || node.link_bandwidth_bytes_per_s > 0,
         "GPUs of a node have no link bandwidth; give node.link_bandwidth_gb_per_s");
  demand(cluster.nodes == 1 || (node.nics >= 1 && node.nic_bandwidth_bytes_per_s > 0),
         "nodes have no network; give node.nics and node.nic_bandwidth_gb_per_s");
  demand(node.domain_gpus >= node.gpus && node.domain_gpus % node.gpus == 0,
         fmt::format(
             "the fast links join {} GPUs and a node has {}; the former must be a multiple of the latter",
             node.domain_gpus, node.gpus));
}

void resize_node(Cluster& cluster, int gpus) {
  Node& node = cluster.node;
  if (gpus == node.gpus) return;
  if (node.domain_gpus == node.gpus) node.domain_gpus = gpus;
  if (node.nics == node.gpus) node.nics = gpus;
  if (node.topology == NodeTopology::kMesh && gpus > 1 && gpus < node.gpus) {
    node.link_bandwidth_bytes_per_s *= static_cast<double>(gpus - 1) / (node.gpus - 1);
    cluster.notes.push_back(
        fmt::format("{} of {} GPUs of a node are used: a GPU keeps the links to the {} peers that are left",
                    gpus, node.gpus, gpus - 1));
  }
  node.gpus = gpus;
}

}  // namespace sextant::cluster
