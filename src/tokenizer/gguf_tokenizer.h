// The tokenizer and chat template that a GGUF file carries in its metadata (keys tokenizer.ggml.*,
// tokenizer.chat_template).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "weights/gguf.h"

namespace sextant::tokenizer {

/// Builds what tokenizer.json would have said. Vocabularies of kind gpt2 (byte-level BPE; the pre-tokenizer
/// is one of those that the file may name and are known here) and llama (SentencePiece). Throws
/// base::UserError naming file and key.
TokenizerParts read_gguf_tokenizer(const weights::GgufFile& gguf, const std::string& file);

/// Whether there is a tokenizer in the file at all.
bool has_gguf_tokenizer(const weights::GgufFile& gguf);

/// bos_token, eos_token, pad_token and unk_token with their texts, those that the file names, as variables of
/// its template.
std::vector<std::pair<std::string, std::string>> gguf_template_tokens(const weights::GgufFile& gguf);

/// The template's source, where there is one.
std::optional<std::string> gguf_chat_template(const weights::GgufFile& gguf);

}  // namespace sextant::tokenizer
