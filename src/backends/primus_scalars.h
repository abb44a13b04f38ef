// What Primus's own loader makes of a scalar, to warn where Sextant reads another type.
//
// Primus loads with PyYAML's SafeLoader (YAML 1.1: `1e-5` is text, `on` a boolean, `012` eight-based, `12:30`
// a number of base 60) and turns text with ${VAR:default} into a boolean or number by rules of its own
// (primus/core/config/yaml_loader.py, _try_scalar). A wrong type reaches Megatron-LM unnoticed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"

namespace sextant::backends {

enum class LoadedType : std::uint8_t { kNull, kBoolean, kInteger, kNumber, kText, kDate };

/// Of a plain (unquoted) scalar under PyYAML's resolver (yaml/resolver.py).
LoadedType pyyaml_type(std::string_view plain);
/// Of a plain scalar under YAML 1.2's core schema, which Sextant reads.
LoadedType core_type(std::string_view plain);
/// Of a scalar after Primus replaced ${…} in it.
LoadedType substituted_type(std::string_view text);

/// One sentence with file and line for each scalar of `written` (a mapping, before variables are replaced)
/// that Primus would give another type than its key has. `substituted` is the same mapping after that.
std::vector<std::string> loader_warnings(const config::Node& written, const config::Node& substituted);

}  // namespace sextant::backends
