// The text of a chat template as tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sextant::tokenizer {

struct TemplateToken {
  enum class Kind {
    kText,
    kVariableBegin,
    kVariableEnd,
    kBlockBegin,
    kBlockEnd,
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,
    kEnd
  };
  Kind kind = Kind::kEnd;
  std::string text;  ///< strings unescaped, numbers without underscores
  int line = 1;
};

/// Jinja's lexer with trim_blocks and lstrip_blocks: a line break after a block tag and white space before
/// one that begins its line are dropped; "-" drops all white space on its side, "+" keeps it. One line break
/// at the end of the source is dropped. Throws base::UserError naming `file` and line.
std::vector<TemplateToken> lex_template(std::string_view source, const std::string& file);

}  // namespace sextant::tokenizer
