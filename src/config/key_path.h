// Dotted key paths: "modules.pre_trainer.overrides.lr", "stages[2].layers".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "config/node.h"

namespace sextant::config {

/// The path of the value under `key` of the mapping at `parent` ("" is the root).
std::string child_path(std::string_view parent, std::string_view key);
/// The path of item `index`, counted from 0, of the sequence at `parent`.
std::string child_path(std::string_view parent, std::size_t index);

/// Writes `path` into the node and the paths that follow from it into everything below.
/// Throws UserError when the paths together would take more than 256 MiB (long keys, deeply nested).
void assign_paths(Node& node, std::string path);

}  // namespace sextant::config
