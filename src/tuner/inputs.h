// From what a user typed to a workload and a cluster: the first step of every planning command.
#pragma once

#include <string>
#include <vector>

#include "backends/workload.h"
#include "cluster/cluster.h"

namespace sextant::tuner {

/// The flags that all planning commands share, as typed.
struct InputFlags {
  std::string workload;               ///< --workload FILE
  std::string model;                  ///< --model FILE|DIR|NAME, where no workload exists
  std::string cluster;                ///< --cluster FILE|NAME
  std::string primus_root;            ///< --primus-root DIR
  std::string backend;                ///< --backend NAME[@VERSION]
  std::string profile;                ///< --profile FILE: measured layers (trials/profile_file.h)
  std::vector<std::string> settings;  ///< --set key=value, in order
};

/// Reads the cluster (with the --set keys that are its own), then the workload (with the others).
/// Throws base::UserError for a missing or contradictory flag and whatever reading finds.
backends::Workload read_inputs(const InputFlags& flags);

/// The cluster alone.
cluster::Cluster read_cluster(const InputFlags& flags);

/// The files that describe the cluster; none for a name of the catalogue.
std::vector<std::string> cluster_files(const InputFlags& flags);

}  // namespace sextant::tuner
