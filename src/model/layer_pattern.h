// Which class each layer is, written as text: "dense*3 moe*58", "(window full)*18".
#pragma once

#include <string>
#include <vector>

#include "config/node.h"

namespace sextant::model {

/// Class names, layer by layer. Grammar: items separated by spaces; an item is a name or items in
/// parentheses, and
/// `*n` after it repeats it n times. Throws base::UserError (at the node) for anything else and beyond
/// 100,000 layers.
std::vector<std::string> expand_layer_pattern(const config::Node& pattern);

}  // namespace sextant::model
