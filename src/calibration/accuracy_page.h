// Validation as pages for the documentation: docs/accuracy.md and docs/memory_accuracy.md.
#pragma once

#include <string>

#include "calibration/validate.h"

namespace sextant::calibration {

/// Errors of time by publisher, the rows that are furthest off, and what was left out and why.
std::string time_page(const Validation& validation);

/// Errors of memory: Megatron-LM's functional tests byte by byte, complete rows of others, the rest, and
/// verdicts.
std::string memory_page(const Validation& validation);

}  // namespace sextant::calibration
