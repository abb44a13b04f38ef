// The projection as evaluator of a training space.
#pragma once

#include <memory>

#include "search/evaluator.h"
#include "search/space.h"
#include "training/job.h"

namespace sextant::trials {

/// Evaluators of the points of `space` applied to `base`; legality by the backend's rules, worth by the
/// projection's tokens per second and GPU. With `hypothetical`, schedules that no backend launches are
/// admitted. Both arguments must outlive the factory.
std::unique_ptr<search::EvaluatorFactory> projection_evaluators(const search::Space& space,
                                                                const training::Job& base, bool hypothetical);

}  // namespace sextant::trials
