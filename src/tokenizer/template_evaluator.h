// Running a template's syntax tree.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tokenizer/template_syntax.h"

namespace sextant::tokenizer {

/// Renders `block` with those variables. Throws TemplateError; unknown filters and tests are found when they
/// are reached.
MarkedText render_block(const Block& block, std::vector<std::pair<std::string, Value>> variables);

}  // namespace sextant::tokenizer
