#include "cluster/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "cluster/catalogue.h"
#include "cluster/document_form.h"
#include "cluster/sanity.h"

namespace sextant::cluster {
namespace {

constexpr double kMicrosecond = 1e-6;

struct Key {
  std::string_view name;
  void (*set)(Cluster& cluster, const config::Node& value);
};

constexpr std::array kKeys = {
    Key{"num_nodes", [](Cluster& c, const config::Node& v) { c.nodes = positive_count(v); }},
    Key{"gpus_per_node", [](Cluster& c, const config::Node& v) { resize_node(c, positive_count(v)); }},
    Key{"memory_safety_margin",
        [](Cluster& c, const config::Node& v) { c.memory_safety_margin = share_below_one(v); }},
    Key{"hbm_capacity_gb", set_memory_capacity},
    Key{"price_per_gpu_hour",
        [](Cluster& c, const config::Node& v) { c.price_per_gpu_hour = non_negative_number(v); }},
    Key{"node_bw",
        [](Cluster& c, const config::Node& v) {
          c.node.link_bandwidth_bytes_per_s = positive_number(v) * base::kGB;
        }},
    Key{"node_lat",
        [](Cluster& c, const config::Node& v) {
          c.node.link_latency_s = non_negative_number(v) * kMicrosecond;
        }},
    Key{"pod_bw",
        [](Cluster& c, const config::Node& v) {
          c.node.nic_bandwidth_bytes_per_s = positive_number(v) * base::kGB;
        }},
    Key{"pod_lat",
        [](Cluster& c, const config::Node& v) {
          c.node.nic_latency_s = non_negative_number(v) * kMicrosecond;
        }},
    Key{"cluster_bw",
        [](Cluster& c, const config::Node& v) {
          c.network.pod_bandwidth_bytes_per_s = positive_number(v) * base::kGB;
        }},
    Key{"cluster_lat",
        [](Cluster& c, const config::Node& v) {
          c.network.pod_latency_s = non_negative_number(v) * kMicrosecond;
        }},
    Key{"pod_size", [](Cluster& c, const config::Node& v) { c.network.pod_gpus = non_negative_count(v); }},
    Key{"nics_per_node", [](Cluster& c, const config::Node& v) { c.node.nics = positive_count(v); }},
    Key{"node_topology", [](Cluster& c, const config::Node& v) { c.node.topology = read_topology(v); }},
    Key{"domain_gpus", [](Cluster& c, const config::Node& v) { c.node.domain_gpus = positive_count(v); }},
    Key{"gpu_initiated_rdma",
        [](Cluster& c, const config::Node& v) { c.node.gpu_initiated_rdma = config::as_boolean(v, true); }},
    Key{"vector_flops",
        [](Cluster& c, const config::Node& v) { c.accelerator.vector_flops = positive_number(v); }},
};

}  // namespace

void set_memory_capacity(Cluster& cluster, const config::Node& gigabytes) {
  const double size = positive_number(gigabytes);
  Accelerator& accelerator = cluster.accelerator;
  const CatalogueEntry* entry = find_accelerator(accelerator.name);
  const auto is_size = [size](double nominal) { return std::abs(nominal - size) < 1e-6; };
  if (entry != nullptr && std::ranges::any_of(entry->nominal_memory_gb, is_size)) {
    accelerator.memory_bytes = entry->nominal_memory_bytes;
    return;
  }
  const double known = accelerator.memory_bytes;
  accelerator.memory_bytes = size * base::kGiB;
  if (std::abs(accelerator.memory_bytes - known) < base::kMiB) return;
  std::string note = fmt::format("hbm_capacity_gb: {} is no size that {} is sold as; taken as {} GiB", size,
                                 accelerator.name.empty() ? "this accelerator" : accelerator.name, size);
  if (known > 0 && accelerator.memory_bytes > known) {
    note += fmt::format(", which is more than the {} it has", base::format_bytes(known));
  }
  cluster.notes.push_back(note);
}

bool set_cluster_key(Cluster& cluster, const std::string& key, const config::Node& value) {
  for (const Key& known : kKeys) {
    if (known.name != key) continue;
    known.set(cluster, value);
    require_sane(cluster, value.position);
    return true;
  }
  return false;
}

std::vector<std::string> cluster_keys() {
  std::vector<std::string> names;
  for (const Key& key : kKeys) names.emplace_back(key.name);
  return names;
}

}  // namespace sextant::cluster
