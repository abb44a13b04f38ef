// Launch files of one framework each; `export_files` (workload.h) chooses.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/workload.h"
#include "training/job.h"

namespace sextant::backends {

/// Adds "overlay.yaml", a complete Primus workload that starts as is, and "exports.sh", its environment.
void add_primus_files(const Workload& workload, const training::Job& job, int generation,
                      std::map<std::string, std::string>& files, std::vector<std::string>& notes);

}  // namespace sextant::backends
