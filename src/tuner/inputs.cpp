#include "tuner/inputs.h"

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "cluster/cluster_files.h"
#include "config/document.h"
#include "trials/profile_file.h"

namespace sextant::tuner {
namespace {

using Setting = std::pair<std::string, config::Node>;

/// Takes the cluster's own keys out of `settings` and applies them.
void apply_cluster_settings(cluster::Cluster& cluster, std::vector<Setting>& settings) {
  std::erase_if(settings, [&](const Setting& setting) {
    return cluster::set_cluster_key(cluster, setting.first, setting.second);
  });
}

std::vector<Setting> parse_settings(const std::vector<std::string>& assignments) {
  std::vector<Setting> settings;
  for (const std::string& assignment : assignments) settings.push_back(config::parse_assignment(assignment));
  return settings;
}

/// Folders against which relative paths inside a cluster file are tried after the file's own: the Primus root
/// as given, else every ancestor of the cluster file and of the workload that holds primus/configs.
std::vector<std::string> path_roots(const InputFlags& flags) {
  if (!flags.primus_root.empty()) return {flags.primus_root};
  std::vector<std::string> roots;
  for (const std::string& file : {flags.cluster, flags.workload}) {
    if (file.empty() || !std::filesystem::exists(file)) continue;
    std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
    while (true) {
      if (std::filesystem::is_directory(folder / "primus" / "configs")) roots.push_back(folder.string());
      if (folder == folder.parent_path()) break;
      folder = folder.parent_path();
    }
  }
  return roots;
}

}  // namespace

cluster::Cluster read_cluster(const InputFlags& flags) {
  if (flags.cluster.empty()) {
    throw base::UserError(
        "--cluster is missing: the hardware decides the answer; give a file or a name such as mi355x:4x8 "
        "(`sextant list clusters` shows them)");
  }
  std::vector<Setting> settings = parse_settings(flags.settings);
  cluster::Cluster cluster = cluster::load_cluster(flags.cluster, path_roots(flags));
  apply_cluster_settings(cluster, settings);
  return cluster;
}

std::vector<std::string> cluster_files(const InputFlags& flags) {
  return cluster::cluster_files(flags.cluster, path_roots(flags));
}

backends::Workload read_inputs(const InputFlags& flags) {
  if (flags.workload.empty() == flags.model.empty()) {
    throw base::UserError(
        flags.workload.empty()
            ? "neither --workload nor --model is given: name a workload file, or a model with --set"
            : "both --workload and --model are given: a workload names its own model; drop one");
  }
  backends::ReadOptions options;
  options.primus_root = flags.primus_root;
  options.backend = flags.backend;
  options.settings = parse_settings(flags.settings);
  options.cluster = read_cluster(flags);
  apply_cluster_settings(options.cluster, options.settings);
  backends::Workload workload = flags.workload.empty() ? backends::workload_from_model(flags.model, options)
                                                       : backends::read_workload(flags.workload, options);
  if (!flags.profile.empty()) workload.job = trials::with_profile(std::move(workload.job), flags.profile);
  return workload;
}

}  // namespace sextant::tuner
