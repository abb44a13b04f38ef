#include "cluster/primus_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "cluster/catalogue.h"
#include "cluster/keys.h"
#include "cluster/sanity.h"
#include "config/document.h"

namespace sextant::cluster {
namespace {

namespace fs = std::filesystem;

/// Keys of a hardware file that describe software, which Sextant calibrates instead, or that repeat others.
constexpr std::array<std::string_view, 19> kSoftwareKeys = {"bw_eff",
                                                            "p2p_bw_eff",
                                                            "hbm_latency",
                                                            "write_latency",
                                                            "write_resp",
                                                            "kernel_launch_latency",
                                                            "rccl_overhead_us",
                                                            "ar_overlap_factor",
                                                            "ar_warmup_chunk_bytes",
                                                            "nic_rdma_setup_us",
                                                            "nic_warmup_bytes",
                                                            "a2a_peer_lat",
                                                            "a2a_intra_sync_overhead",
                                                            "a2a_intra_node_peer_lat",
                                                            "a2a_mesh_contention",
                                                            "a2a_rccl_overhead_us",
                                                            "a2a_remote_contention",
                                                            "switch_topology",
                                                            "gpu_clock_mhz"};

Cluster usual_cluster(const config::Node& arch) {
  const std::string name = config::as_text(arch);
  const CatalogueEntry* entry = find_accelerator(name);
  if (entry == nullptr) {
    throw base::UserError(
        arch.position, arch.path,
        fmt::format("there is no accelerator '{}' in the catalogue{}", name, nearest_accelerators(name)));
  }
  return entry->usual;
}

void note_unused(Cluster& cluster, const config::Node& value, std::string_view key) {
  const bool software = std::ranges::find(kSoftwareKeys, key) != kSoftwareKeys.end();
  cluster.notes.push_back(
      software ? fmt::format("{}: '{}' is not used: it describes software, which Sextant calibrates apart",
                             value.position.text(), key)
               : fmt::format("{}: '{}' is not a key Sextant knows; ignored{}", value.position.text(), key,
                             base::did_you_mean(key, cluster_keys())));
}

/// Applies the mapping under `hardware_config:`.
void apply_hardware(const config::Node& hardware, Cluster& cluster) {
  // The node's size first: the other figures describe a node of that size.
  if (const config::Node* size = hardware.find_set("node_size")) {
    const int gpus = positive_count(*size);
    if (cluster.node.domain_gpus == cluster.node.gpus || cluster.node.domain_gpus < gpus)
      cluster.node.domain_gpus = gpus;
    cluster.node.gpus = gpus;
  }
  for (const auto& [key, value] : config::require_mapping(hardware).entries) {
    if (key == "node_size" || key == "gpu_arch" || value.is_null()) continue;
    const auto known = cluster_keys();
    if (std::ranges::find(known, key) == known.end()) {
      // Off is what Sextant assumes: NICs of a node reach all other nodes through the pod's fabric.
      if (key != "switch_topology" || config::as_boolean(value, true)) note_unused(cluster, value, key);
      continue;
    }
    set_cluster_key(cluster, key, value);
  }
}

std::optional<fs::path> primus_root_above(const fs::path& file) {
  std::error_code ignored;
  for (fs::path folder = fs::absolute(file, ignored).parent_path(); !folder.empty();
       folder = folder.parent_path()) {
    if (fs::is_directory(folder / "primus" / "configs", ignored)) return folder;
    if (folder == folder.root_path()) break;
  }
  return std::nullopt;
}

std::string find_hardware_file(const config::Node& value, const std::string& file,
                               const std::vector<std::string>& roots) {
  const fs::path wanted = config::as_text(value);
  std::vector<fs::path> places;
  if (wanted.is_absolute()) {
    places.push_back(wanted);
  } else {
    places.push_back(fs::path(file).parent_path() / wanted);
    for (const auto& root : roots) places.push_back(fs::path(root) / wanted);
    if (const auto root = primus_root_above(file)) places.push_back(*root / wanted);
  }
  std::error_code ignored;
  std::vector<std::string> tried;
  for (const auto& place : places) {
    if (fs::is_regular_file(place, ignored)) return place.lexically_normal().string();
    tried.push_back(place.lexically_normal().string());
  }
  throw base::UserError(
      value.position, value.path,
      fmt::format("hardware file '{}' is not there (tried {}); correct the path, name the Primus root, or "
                  "remove the key to use the catalogue's figures",
                  wanted.string(), base::join(tried, ", ")));
}

config::Node read_hardware_file(const std::string& file) {
  config::Node document = config::read_document(file);
  if (!is_primus_hardware(document)) {
    throw base::UserError(document.position, "",
                          "this is no Primus hardware file: it has no mapping 'hardware_config' at its top");
  }
  return document;
}

void note_unknown_keys(Cluster& cluster, const config::Node& mapping, const std::vector<std::string>& known) {
  for (const auto& [key, value] : mapping.entries) {
    if (std::ranges::find(known, key) != known.end()) continue;
    cluster.notes.push_back(fmt::format("{}: '{}' is not a key Sextant knows; ignored{}",
                                        value.position.text(), value.path, base::did_you_mean(key, known)));
  }
}

}  // namespace

bool is_primus_target_cluster(const config::Node& document) {
  return document.find("target_cluster") != nullptr;
}

bool is_primus_hardware(const config::Node& document) {
  const config::Node* hardware = document.find("hardware_config");
  return hardware != nullptr && hardware->is_mapping();
}

std::string hardware_file(const config::Node& document, const std::string& file,
                          const std::vector<std::string>& roots) {
  const config::Node& target = config::require_mapping(config::require(document, "target_cluster"));
  const config::Node* hardware = target.find_set("hardware_config");
  return hardware == nullptr ? std::string() : find_hardware_file(*hardware, file, roots);
}

Cluster read_primus_target_cluster(const config::Node& document, const std::string& file,
                                   const std::vector<std::string>& roots) {
  const config::Node& target = config::require_mapping(config::require(document, "target_cluster"));
  config::Node arch;  // Primus' own default, primus/agents/tuning_agent/config.py
  arch.kind = config::Node::Kind::kScalar;
  arch.text = "mi355x";
  if (const config::Node* named = target.find_set("gpu_arch")) arch = *named;
  Cluster cluster = usual_cluster(arch);
  if (const std::string path = hardware_file(document, file, roots); !path.empty()) {
    const config::Node read = read_hardware_file(path);
    apply_hardware(*read.find("hardware_config"), cluster);
    cluster.sources.push_back("network: " + path);
  }
  cluster.name = config::text_or(target, "name", "unnamed");
  if (const config::Node* nodes = target.find_set("num_nodes")) set_cluster_key(cluster, "num_nodes", *nodes);
  if (const config::Node* gpus = target.find_set("gpus_per_node"))
    set_cluster_key(cluster, "gpus_per_node", *gpus);
  if (const config::Node* clock = target.find_set("gpu_clock_mhz")) {
    cluster.notes.push_back(
        fmt::format("{}: 'gpu_clock_mhz' is not used: peaks are the data sheet's", clock->position.text()));
  }
  note_unknown_keys(cluster, target,
                    {"name", "num_nodes", "gpus_per_node", "gpu_arch", "hardware_config", "gpu_clock_mhz"});
  if (const config::Node* optimization = document.find_set("optimization")) {
    for (const char* key : {"memory_safety_margin", "hbm_capacity_gb"}) {
      if (const config::Node* value = config::require_mapping(*optimization).find_set(key))
        set_cluster_key(cluster, key, *value);
    }
    note_unknown_keys(cluster, *optimization,
                      {"objective", "memory_safety_margin", "hbm_capacity_gb", "budget", "axes"});
  }
  note_unknown_keys(cluster, document,
                    {"target_cluster", "available_for_benchmark", "optimization", "agent"});
  require_sane(cluster, target.position);
  return cluster;
}

Cluster read_primus_hardware(const config::Node& document, const std::string& file) {
  const config::Node& hardware = *document.find("hardware_config");
  config::Node arch;
  arch.kind = config::Node::Kind::kScalar;
  arch.text = fs::path(file).stem().string();
  arch.position = document.position;
  for (const config::Node* mapping : {&document, &hardware}) {
    if (const config::Node* named = mapping->find_set("gpu_arch")) arch = *named;
  }
  if (find_accelerator(arch.text) == nullptr) {
    throw base::UserError(
        arch.position, arch.path,
        fmt::format(
            "which accelerator this hardware belongs to is unknown: '{}' is none of the catalogue's{}; add "
            "`gpu_arch: NAME` or name the file after the accelerator",
            arch.text, nearest_accelerators(arch.text)));
  }
  Cluster cluster = usual_cluster(arch);
  apply_hardware(hardware, cluster);
  cluster.name = fs::path(file).stem().string();
  cluster.sources.push_back("network: " + file);
  note_unknown_keys(cluster, document, {"hardware_config", "gpu_arch"});
  require_sane(cluster, hardware.position);
  return cluster;
}

}  // namespace sextant::cluster
