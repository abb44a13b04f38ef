#include "cluster/catalogue.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "cluster/document_form.h"
#include "cluster/sanity.h"
#include "config/embedded_data.h"

namespace sextant::cluster {
namespace {

constexpr std::string_view kFolder = "clusters/";

std::string folded(std::string_view name) {
  std::string result;
  for (const char c : base::lower_case(name)) {
    if (c != ' ' && c != '_' && c != '-') result.push_back(c);
  }
  return result;
}

CatalogueEntry read_entry(const std::string& path) {
  const config::Node document = config::data_document(path);
  CatalogueEntry entry;
  entry.key = path.substr(kFolder.size(), path.rfind('.') - kFolder.size());
  entry.usual.node = Node{};
  read_document_form(document, entry.usual);
  if (const auto* aliases = document.find_set("aliases")) {
    for (const auto& item : config::require_sequence(*aliases).items)
      entry.aliases.push_back(config::as_text(item));
  }
  if (const auto* sizes = document.find_set("nominal_memory_gb")) {
    for (const auto& item : config::require_sequence(*sizes).items) {
      entry.nominal_memory_gb.push_back(positive_number(item));
    }
  }
  entry.nominal_memory_bytes = entry.usual.accelerator.memory_bytes;
  if (const auto* exact = document.find_set("nominal_memory_gib")) {
    entry.nominal_memory_bytes = positive_number(*exact) * base::kGiB;
  }
  require_sane(entry.usual, document.position);
  return entry;
}

std::vector<CatalogueEntry> read_catalogue() {
  std::vector<CatalogueEntry> entries;
  for (const std::string& path : config::data_paths(kFolder)) entries.push_back(read_entry(path));
  return entries;
}

[[noreturn]] void refuse_shape(const std::string& name, std::string_view shape) {
  throw base::UserError(
      fmt::format("cluster '{}': '{}' is no size; write NODESxGPUS ('mi355x:4x8'), a number of GPUs in "
                  "whole nodes ('mi355x:32'), or nothing for one node",
                  name, shape));
}

int read_size(const std::string& name, std::string_view shape, std::string_view digits) {
  constexpr std::size_t kMostDigits = 7;
  if (digits.empty() || digits.size() > kMostDigits) refuse_shape(name, shape);
  int value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') refuse_shape(name, shape);
    value = value * 10 + (c - '0');
  }
  if (value == 0) {
    throw base::UserError(fmt::format("cluster '{}': 0 nodes or GPUs; give at least 1 of each", name));
  }
  return value;
}

}  // namespace

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = read_catalogue();
  return entries;
}

const CatalogueEntry* find_accelerator(std::string_view name) {
  const std::string wanted = folded(name);
  for (const auto& entry : catalogue()) {
    if (folded(entry.key) == wanted || folded(entry.usual.accelerator.name) == wanted) return &entry;
    for (const auto& alias : entry.aliases) {
      if (folded(alias) == wanted) return &entry;
    }
  }
  return nullptr;
}

std::string nearest_accelerators(std::string_view name) {
  std::vector<std::string> names = catalogue_names();
  for (const auto& entry : catalogue()) {
    for (const auto& alias : entry.aliases) names.push_back(base::lower_case(alias));
  }
  const std::string nearest = base::did_you_mean(base::lower_case(name), names);
  return nearest.empty() ? fmt::format("; known are {}", base::join(catalogue_names(), ", ")) : nearest;
}

std::vector<std::string> catalogue_names() {
  std::vector<std::string> names;
  for (const auto& entry : catalogue()) names.push_back(entry.key);
  return names;
}

Cluster cluster_from_name(const std::string& name) {
  const std::size_t colon = name.find(':');
  const std::string part = name.substr(0, colon);
  const CatalogueEntry* entry = find_accelerator(part);
  if (entry == nullptr) {
    throw base::UserError(
        fmt::format("cluster '{}': there is no accelerator '{}' in the catalogue and no such file{}", name,
                    part, nearest_accelerators(part)));
  }
  Cluster cluster = entry->usual;
  cluster.name = name;
  if (colon == std::string::npos) return cluster;

  const std::string shape = name.substr(colon + 1);
  const std::size_t cross = shape.find('x');
  if (cross != std::string::npos) {
    cluster.nodes = read_size(name, shape, std::string_view(shape).substr(0, cross));
    resize_node(cluster, read_size(name, shape, std::string_view(shape).substr(cross + 1)));
  } else {
    const int gpus = read_size(name, shape, shape);
    const int usual = cluster.node.gpus;
    if (gpus < usual) {
      resize_node(cluster, gpus);
    } else if (gpus % usual == 0) {
      cluster.nodes = gpus / usual;
    } else {
      throw base::UserError(
          fmt::format("cluster '{0}': {1} GPUs are no whole number of {2}-GPU nodes; use {3} or {4}, or "
                      "write NODESxGPUS",
                      name, gpus, usual, gpus / usual * usual, (gpus / usual + 1) * usual));
    }
  }
  require_sane(cluster, {});
  return cluster;
}

}  // namespace sextant::cluster
