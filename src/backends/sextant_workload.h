// Sextant's own short YAML: a model, a backend, knobs by their short names, and switches of the software
// (docs/reference/workload.md).
#pragma once

#include <string>
#include <vector>

#include "backends/workload.h"
#include "config/node.h"
#include "training/job.h"

namespace sextant::backends {

/// A job of `document`, which stands in `path`. Settings: short names, "software.NAME", or the backend's own
/// keys. Throws base::UserError at the key.
Workload read_sextant_workload(const config::Node& document, const std::string& path,
                               const ReadOptions& options);

/// The job as such a document, complete: model, every knob and switch that is not usual.
std::string sextant_workload_text(const training::Job& job);

}  // namespace sextant::backends
