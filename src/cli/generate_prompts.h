// The prompts of `sextant generate`, in any of the forms that it takes, and its answers as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "batching/plan.h"
#include "tokenizer/tokenizer.h"

namespace sextant::cli {

using Prompts = std::vector<std::vector<batching::TokenId>>;

/// What the user gave; exactly one of them.
struct PromptFlags {
  std::vector<std::string> texts;  ///< --prompt, repeatable
  std::string text_file;           ///< --prompt-file
  std::vector<std::string> chats;  ///< --chat, repeatable: each a conversation's first message
  std::string token_ids;           ///< --token-ids
};

/// The tokenizer of a model's folder (tokenizer.json) or GGUF file; none where it has none.
std::optional<tokenizer::Tokenizer> find_tokenizer(const std::string& model);

/// Throws base::UserError for no form or several, for text without a tokenizer, and for a damaged file.
Prompts read_prompts(const PromptFlags& flags, const std::string& folder,
                     const std::optional<tokenizer::Tokenizer>& tokenizer);

/// The flag or file that the prompts came from, for messages.
std::string prompts_name(const PromptFlags& flags);

}  // namespace sextant::cli
