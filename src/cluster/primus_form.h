// Primus' cluster files: the target-cluster YAML of its tuning agent and the hardware YAML of its projection.
//
// Source: AMD-AGI/Primus examples/agents/tuning_agent/*.yaml (fields in primus/agents/tuning_agent/config.py)
// and examples/hardware_configs/*.yaml (fields in
// primus/core/projection/module_profilers/collective_args.py). Keys that Sextant has no use for, known or
// not, become notes, never errors.
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "config/node.h"

namespace sextant::cluster {

bool is_primus_target_cluster(const config::Node& document);
bool is_primus_hardware(const config::Node& document);

/// A target-cluster document: `gpu_arch` names the accelerator; `hardware_config` is looked up beside the
/// file, then under each of `roots`, then under the first ancestor of the file that holds primus/configs.
Cluster read_primus_target_cluster(const config::Node& document, const std::string& file,
                                   const std::vector<std::string>& roots);

/// The hardware file that a target-cluster document names, found as said above; empty when it names none.
std::string hardware_file(const config::Node& document, const std::string& file,
                          const std::vector<std::string>& roots);

/// A hardware document alone: one node of the accelerator that the file is named after, or `gpu_arch` names.
Cluster read_primus_hardware(const config::Node& document, const std::string& file);

}  // namespace sextant::cluster
