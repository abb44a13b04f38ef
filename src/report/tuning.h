// The documents of `sextant tune`, `sextant validate` and `sextant calibrate` as text for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report/table.h"

namespace sextant::report {

std::string tuning_text(const nlohmann::ordered_json& document, const Style& style);
std::string validation_text(const nlohmann::ordered_json& document, const Style& style);
std::string calibration_text(const nlohmann::ordered_json& document, const Style& style);

}  // namespace sextant::report
