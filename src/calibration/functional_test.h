// Rows of Megatron-LM's own functional tests: the arguments of the test stand in column `extra`.
#pragma once

#include <string>
#include <variant>

#include "calibration/measured.h"
#include "training/job.h"

namespace sextant::calibration {

/// Model, layout and software of the test; the cluster is left to the caller. A sentence when the row cannot
/// be expressed: state-space hybrids, a GPU count that neither the row nor its degrees give, an unreadable
/// layout string. What arguments leave out has Megatron-LM's defaults (megatron/training/arguments.py).
std::variant<training::Job, std::string> functional_test_job(const MeasuredRow& row);

}  // namespace sextant::calibration
