// What a layout is short of, and which knobs could relieve it: from its projection alone.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "training/projection.h"

namespace sextant::tuner {

/// One scarce resource.
struct Bottleneck {
  std::string resource;           ///< "pipeline bubble", "memory of stage 3", …
  double share = 0;               ///< of the step's time; of the memory limit for memory
  std::vector<std::string> axes;  ///< knobs that may relieve it, whatever it costs elsewhere
};

/// The resources that take at least 3 % of the step, largest share first; memory comes first where less than
/// a tenth of it is left, since it then forbids most other moves.
std::vector<Bottleneck> bottlenecks(const training::Projection& projection);

}  // namespace sextant::tuner
