// The parts of tokenizer.json that are lists of steps. For tokenizer_json.cpp.
#pragma once

#include "tokenizer/json_field.h"
#include "tokenizer/tokenizer.h"

namespace sextant::tokenizer {

/// Each appends to `parts` what the node describes. Throws base::UserError for unknown types and wrong
/// fields.
void read_normalizer(const JsonField& node, TokenizerParts& parts);
void read_pre_tokenizer(const JsonField& node, TokenizerParts& parts);
void read_post_processor(const JsonField& node, TokenizerParts& parts);
void read_decoder(const JsonField& node, TokenizerParts& parts);

}  // namespace sextant::tokenizer
