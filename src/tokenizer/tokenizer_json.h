// tokenizer.json, the file of Hugging Face's library `tokenizers`.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace sextant::tokenizer {

/// Reads such a file's text; `file` names it in messages. Throws base::UserError with the key path for damage
/// and for kinds that are not supported (only BPE models; see docs/design/tokenizer.md for the list).
TokenizerParts read_tokenizer_json(std::string_view text, const std::string& file);

/// A folder that holds tokenizer.json, or such a file itself. Throws base::UserError.
Tokenizer load_tokenizer(const std::string& path);

}  // namespace sextant::tokenizer
