// What all readers of workloads do alike.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backends/workload.h"
#include "config/node.h"
#include "training/job.h"

namespace sextant::backends {

/// Sets backend and version: `asked` ("NAME[@VERSION]" from the command line), else what stands in the file,
/// else `usual`. Throws base::UserError for unknown ones.
void set_backend(training::Job& job, const std::string& asked, const config::Node* in_file,
                 const std::string& usual);

/// Keys that the cluster reader takes; workload readers leave them alone.
bool is_cluster_key(const std::string& key);

/// Settings split into those for the framework's keys and those by short name, each in order. A name that is
/// both goes to the keys. Cluster keys are dropped.
struct Settings {
  std::vector<std::pair<std::string, config::Node>> keys;
  std::vector<std::pair<std::string, config::Node>> knobs;
};
Settings split_settings(const std::vector<std::pair<std::string, config::Node>>& settings);

/// Sets the knobs of `settings`, and the switches that a choice made by name brings along (`adapt_software`).
void apply_knobs(training::Job& job, const Settings& settings);

}  // namespace sextant::backends
