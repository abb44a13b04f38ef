// Parts of the document of `sextant tune` (docs/reference/json.md) that a projected and a measured search
// share.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "backends/workload.h"
#include "search/exhaustive.h"
#include "search/space.h"
#include "training/job.h"
#include "tuner/json.h"

namespace sextant::tuner {

/// The job on a cluster that leaves `margin` of its memory free; as it is without one.
training::Job with_margin(training::Job job, std::optional<double> margin);

/// One layout with everything that is known of it: "layout", "memory", "time", "throughput".
Json projected_json(const training::Job& job);
/// The workload's own layout: as above when it is legal, and "legal", "violations", "notes".
Json baseline_json(const training::Job& base, bool hypothetical);

/// Points are counted in doubles; written as integers as far as doubles hold them exactly.
Json count_json(double count);
Json space_json(const search::Space& space, const search::Answer& answer);
Json rejected_json(const training::Job& job, const search::Answer& answer);

/// One step up and down each axis around `winner`: a peak or a basin? `rules` as search::EvaluatorFactory has
/// it.
Json sensitivity_json(const search::Space& space, const training::Job& job, const search::Scored& winner,
                      search::Evaluator& evaluator, std::size_t rules);
/// The best that each value of each axis reaches anywhere in the space.
Json effects_json(const search::Space& space, const search::Answer& answer);
Json pareto_json(const search::Space& space, const search::Answer& answer);

/// Adds launch files of `job` to `files` by their names in the run's folder ("best-2/…"), and names them in
/// `entry` with the paths that they will have in `folder`; what they cannot say is added to `notes`, once.
void add_exports(const std::string& folder, std::size_t rank, const backends::Workload& workload,
                 const training::Job& job, Json& entry, Json& notes,
                 std::map<std::string, std::string>& files);

}  // namespace sextant::tuner
