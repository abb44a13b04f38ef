// What a measured search starts from: the inputs, the space, and the projection of every layout that may be
// tried.
//
// The projection costs microseconds and a trial minutes, so the whole space is projected first. Layouts that
// break a rule or that are projected to need more memory than there is are never run. Without --memory-margin
// the limit is all of the accelerator's memory: a projection needs a margin because it may be wrong, a
// measurement does not.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/workload.h"
#include "search/exhaustive.h"
#include "search/prior.h"
#include "tuner/tune.h"

namespace sextant::tuner {

/// The most layouts that a measured search chooses from.
inline constexpr std::size_t kMostCandidates = 20'000;

struct MeasuredSetup {
  TuneFlags flags;
  backends::Workload workload;
  search::Space space;
  std::vector<std::string> notes;  ///< on space and candidates
  std::unique_ptr<search::EvaluatorFactory> factory;
  search::Answer answer;  ///< counts, and the best as projected
  search::Prior prior;
  std::optional<search::Point> own;  ///< the workload's layout; empty when it is no point of the space
  std::string past_runs;             ///< of --learn-from (past_runs.h); empty without

  MeasuredSetup() = default;
  MeasuredSetup(const MeasuredSetup&) = delete;  // prior and factory point into it
  MeasuredSetup& operator=(const MeasuredSetup&) = delete;

  const training::Job& base() const { return workload.job; }
  /// The layout of a point as the framework runs it.
  training::Job job(const search::Point& point) const;
};

/// Reads and projects. `prior` holds all legal points that fit (without trials, also those that do not);
/// where they are more than kMostCandidates, the best by projection and the neighbourhood of the workload's
/// own layout. Throws base::UserError.
std::unique_ptr<MeasuredSetup> measured_setup(const TuneFlags& flags);

/// The prior in a few lines of text: two programs that project alike have the same.
std::string prior_summary(const MeasuredSetup& setup);

}  // namespace sextant::tuner
