// The layout and the software of a row.
#pragma once

#include <string>

#include "calibration/measured.h"
#include "calibration/sources.h"
#include "layers/software.h"
#include "model/model.h"
#include "parallel/layout.h"

namespace sextant::calibration {

layers::Software software_of(RowSettings& settings);

struct RowLayout {
  parallel::Layout layout;
  /// Optimizer steps of a frameworks that flushes its pipeline several times a step: the step takes this many
  /// times the layout's own, whose global batch is that of one flush.
  int flushes = 1;
  bool cheapest_recompute = false;  ///< recomputation is still to be chosen: the least that fits
  std::string reason;               ///< why the row has no layout; empty when it has one
};

/// REQUIRES: `model` is the row's.
RowLayout layout_of(const MeasuredRow& row, const model::Model& model, RowSettings& settings);

}  // namespace sextant::calibration
