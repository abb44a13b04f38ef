// The software switches by name, for Sextant's own YAML (`software:`).
#pragma once

#include <string>
#include <vector>

#include "config/node.h"
#include "layers/software.h"

namespace sextant::backends {

std::vector<std::string> software_names();

/// Throws base::UserError for an unknown name or an impossible value.
void set_software(layers::Software& software, const std::string& name, const config::Node& value);

/// A mapping of the switches in which `software` differs from `usual`.
config::Node software_document(const layers::Software& software, const layers::Software& usual);

}  // namespace sextant::backends
