// The model that a row of a table describes.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "calibration/measured.h"
#include "calibration/sources.h"
#include "model/model.h"

namespace sextant::calibration {

/// The catalogue's model of that name when every number the row prints agrees with it (it knows what tables
/// leave out: latent attention, shared experts, first dense layers), with the row's layer count and
/// vocabulary; else a model of equal layers made of the row's own numbers. A sentence when neither will do:
/// hybrids with state-space layers, low-rank adaptation, missing numbers. Adds what was assumed to
/// `settings`.
std::variant<std::shared_ptr<const model::Model>, std::string> model_of(const MeasuredRow& row,
                                                                        RowSettings& settings);

}  // namespace sextant::calibration
