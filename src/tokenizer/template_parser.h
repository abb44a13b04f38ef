// The tokens of a chat template as a syntax tree.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/template_syntax.h"

namespace sextant::tokenizer {

/// Parses the source of a template. Throws base::UserError naming `file` and line for what is wrong or not
/// supported.
Block parse_template(std::string_view source, const std::string& file);

}  // namespace sextant::tokenizer
