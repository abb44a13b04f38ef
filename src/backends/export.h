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

/// Takes keys that only a mixture of experts has out of `written` for a dense model, unless `existing` has
/// them.
void drop_expert_keys(const model::Model& model, const config::Node& existing, config::Node& written);

/// Says which flags a person must add: model::Model holds neither rotary base, RoPE scaling nor norm epsilon,
/// since they cost nothing, but Megatron-LM would train another model with its own defaults.
void note_missing_numerics(const model::Model& model, bool primus, std::vector<std::string>& notes);

}  // namespace sextant::backends
