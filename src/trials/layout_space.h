// The layouts of one job as a search space.
//
// Axes are Sextant's short knob names; a point is applied to the workload's own layout, so that whatever no
// axis turns stays as the workload says. Named spaces are data (data/spaces/*.yaml); "all" opens every knob.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/rules.h"
#include "config/node.h"
#include "search/space.h"
#include "training/job.h"

namespace sextant::trials {

struct SpaceFlags {
  std::string space;               ///< --space NAME|FILE; empty: "case-study"
  std::vector<std::string> pins;   ///< --pin axis=value
  std::vector<std::string> opens;  ///< --open axis, or "all"
  bool hypothetical = false;       ///< admit schedules that the backend cannot launch
};

/// The space for `job`: axes in the order in which a tree search should fix them (degrees first). Unless a
/// space was named, the workload's own value is added to every axis that is not pinned, so that its own
/// layout competes; `notes` (may be null) receives what was added. Throws base::UserError for an unknown
/// space, axis or value, and for contradictory flags.
search::Space layout_space(const training::Job& job, const SpaceFlags& flags,
                           std::vector<std::string>* notes = nullptr);

/// The point that is the job's own layout; empty when an axis has no value for it.
std::optional<search::Point> own_point(const search::Space& space, const training::Job& job);

/// Applies points to a job's layout. Keeps the layouts of the last prefix, so that neighbouring points cost
/// one or two knobs. Not thread-safe; one a thread.
class PointApplier {
 public:
  /// `space` must outlive the applier.
  PointApplier(const search::Space& space, const training::Job& base);

  /// The job with the prefix applied as asked, and the software switches that the layout brings along. Valid
  /// until the next call.
  const training::Job& apply(const search::Point& prefix);

  /// The job of the last apply() as the framework runs it.
  const training::Job& normalised(const backends::RuleSet& rules);

 private:
  void finish();

  const search::Space& space_;
  training::Job job_;
  parallel::Layout base_;
  layers::Software software_;
  bool sequence_parallel_is_axis_ = false;
  std::vector<std::vector<config::Node>> values_;  // parsed once
  std::vector<parallel::Layout> layouts_;          // layouts_[d]: the first d axes applied
  search::Point applied_;
};

}  // namespace sextant::trials
