#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "cluster/catalogue.h"
#include "cluster/cluster_files.h"
#include "cluster/document_form.h"
#include "cluster/primus_form.h"
#include "cluster/sanity.h"
#include "config/document.h"

namespace sextant::cluster {
namespace {

bool looks_like_a_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".yaml") || text.ends_with(".yml") ||
         text.ends_with(".json");
}

Cluster read_sextant(const config::Node& document, const std::string& file) {
  Cluster cluster;
  if (const auto* accelerator = config::require_mapping(document).find_set("accelerator")) {
    const std::string name = config::as_text(*accelerator);
    const CatalogueEntry* entry = find_accelerator(name);
    if (entry == nullptr) {
      throw base::UserError(
          accelerator->position, accelerator->path,
          fmt::format("there is no accelerator '{}' in the catalogue{}", name, nearest_accelerators(name)));
    }
    cluster = entry->usual;
    cluster.name = std::filesystem::path(file).stem().string();
  }
  read_document_form(document, cluster);
  cluster.sources.push_back("figures not named above: " + file);
  require_sane(cluster, document.position);
  return cluster;
}

bool is_name(const std::string& file_or_name) {
  std::error_code ignored;
  return !std::filesystem::is_regular_file(file_or_name, ignored) && !looks_like_a_path(file_or_name);
}

}  // namespace

std::vector<std::string> cluster_files(const std::string& file_or_name,
                                       const std::vector<std::string>& roots) {
  if (is_name(file_or_name)) return {};
  std::vector<std::string> files{file_or_name};
  const config::Node document = config::read_document(file_or_name);
  if (is_primus_target_cluster(document)) {
    const std::string hardware = hardware_file(document, file_or_name, roots);
    if (!hardware.empty()) files.push_back(hardware);
  }
  return files;
}

Cluster load_cluster(const std::string& file_or_name, const std::vector<std::string>& roots) {
  if (is_name(file_or_name)) return cluster_from_name(file_or_name);
  const config::Node document = config::read_document(file_or_name);
  if (is_primus_target_cluster(document)) return read_primus_target_cluster(document, file_or_name, roots);
  if (is_primus_hardware(document)) return read_primus_hardware(document, file_or_name);
  return read_sextant(document, file_or_name);
}

}  // namespace sextant::cluster
