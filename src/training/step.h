// One step: a layout's stage times replayed under its schedule, and what happens before and after.
//
//   step = body + straggler + optimizer + parameter gather + fixed
//   body = max over stages of (end of its last backward + gradient traffic that is waited for)
//
// Every stage must have its gradients before any may update: the clipping norm is taken over all of them. The
// breakdown is that of the busiest stage; what is left of `body` there is its bubble. Where a runtime
// validates the optimizer afterwards, stages go into the next step without waiting for one another and a
// stage's own span replaces its end.
//
// Formulas and sources: docs/design/projection.md.
#pragma once

#include "pipeline/replay.h"
#include "training/projection.h"
#include "training/step_stages.h"

namespace sextant::training {

/// Everything a step's time depends on; references outlive the call.
struct StepInputs {
  const Job& job;  ///< `job.layout` is the layout projected
  const StepTerms& step;
  const MemoryTerms& memory;
  const parallel::StageTable& table;
  const parallel::Groups& groups;
  const cost::Machine& machine;
};

/// Reused between calls.
struct StepScratch {
  StageCosts costs;
  pipeline::Replayer replayer;
};

/// The step's time; `by_operation` only when asked for.
Time step_time(const StepInputs& inputs, StepScratch& scratch, bool with_operations);

/// Seconds a boundary tensor takes to the next stage. Without sequence parallelism every tensor rank holds
/// the whole tensor: each sends its share over the network and the shares are gathered over the fast links
/// behind it (scatter-gather, arXiv 2104.04473 section 4.1).
double hop_s(const StepTerms& step, const parallel::Layout& layout, const parallel::Groups& groups,
             const cost::Machine& machine);

/// Growth of the step with scale: Efficiency::straggler_per_doubling for each doubling of GPUs beyond 8.
double straggler_fraction(int gpus, const cost::Efficiency& efficiency);

}  // namespace sextant::training
