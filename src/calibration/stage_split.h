// How a publisher's framework deals layers to stages, which tables never print.
#pragma once

#include <string>

#include "calibration/sources.h"
#include "model/model.h"
#include "parallel/layout.h"

namespace sextant::calibration {

/// Sets `layout.split` so that the layers can be dealt. `rule`: "" (evenly, then with embedding and head
/// counted as layers, then as even as possible), "deepspeed" (greedy: full stages first, the last gets the
/// rest), "balanced" (embedding and head counted as layers), or "layout …", an explicit string. Says in
/// `settings` what it chose beyond an even split. Returns why the layers cannot be dealt, or an empty text.
std::string split_stages(const model::Model& model, const std::string& rule, parallel::Layout& layout,
                         RowSettings& settings);

}  // namespace sextant::calibration
