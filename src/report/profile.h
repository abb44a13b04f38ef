// The measured layers that a projection was made with (docs/reference/profile.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report/measured.h"

namespace sextant::report {

/// `document` is any that may have "profile"; without one the section is empty.
Section profile_section(const nlohmann::ordered_json& document);
/// The same as text with a line end before it; empty without a profile.
std::string profile_text(const nlohmann::ordered_json& document, const Style& style);

}  // namespace sextant::report
