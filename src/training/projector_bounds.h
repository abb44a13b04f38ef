// Lower bounds of a layout's peak and step that hold for every schedule, number of chunks, recomputation and
// stage split.
//
// Peak. State is linear in parameters, so the heaviest rank carries at least the average; on top of that
// every rank has the buffers that do not depend on the split, and one with a decoder layer the gradients of
// its backward. Activations kept between forward and backward are left out: recomputation and the split
// decide them.
//
// Step. The busiest rank works at least the average rank's time, nothing recomputed; the optimizer likewise.
// No bubble, no sends, no gradient traffic.
#pragma once

#include "training/projector_cache.h"
#include "training/step_stages.h"

namespace sextant::training {

double peak_bytes_bound(const Job& job, const MemoryTerms& memory, const cost::Efficiency& efficiency);
double step_s_bound(const Job& job, const Terms& terms, const parallel::Groups& groups,
                    const cost::Machine& machine);

}  // namespace sextant::training
