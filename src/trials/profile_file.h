// Files with measured layer times: Sextant's own (docs/reference/profile.md), and what `primus projection …
// --save-benchmark` writes.
#pragma once

#include <string>

#include "training/layer_profile.h"

namespace sextant::trials {

/// Reads the profile at `path` for `job`, whose model says which layers there are and whose layout fills in
/// what the file leaves open. Own format: "sextant_profile": 1. Primus's benchmark artefact:
/// "profiling_results", schema 2, and schema 1, which has no "schema_version". Throws base::UserError for a
/// file that is neither, for a layer that takes no time, and for degrees that do not divide the GPUs.
training::LayerProfile read_profile(const std::string& path, const training::Job& job);

/// The job with measured layers in place of the cost model's.
training::Job with_profile(training::Job job, const std::string& path);

}  // namespace sextant::trials
