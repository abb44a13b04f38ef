// A model as its text side sees it: names, tokenizer, chat template, limits.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/served_model.h"
#include "server/request.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace sextant::server {

struct TextModel {
  std::vector<std::string> names;  ///< that requests may ask for; the first is the one that answers carry
  std::int64_t vocabulary = 0;
  std::int64_t longest_tokens = 0;  ///< prompt and answer together
  std::vector<TokenId> end_ids;
  std::optional<tokenizer::Tokenizer> tokenizer;  ///< none: prompts are token ids, and so are answers
  std::optional<tokenizer::ChatTemplate> chat;
  std::string no_chat_because;
  std::vector<std::pair<std::string, tokenizer::Value>> template_tokens;
  bool thinks = false;  ///< its template knows <think> … </think>
  Defaults defaults;
};

/// Reads tokenizer, template and generation_config.json beside the model. A model without tokenizer or
/// template is served without; a damaged one throws base::UserError.
TextModel load_text_model(const engine::ServedModel& model);

struct EncodedPrompt {
  std::vector<TokenId> ids;
  std::string text;              ///< as given, or the tokens' text; for echo
  bool begins_thinking = false;  ///< the prompt ends inside <think>
};

/// The prompts of a request as tokens. Throws RequestError for a prompt that is empty or leaves no room, for
/// text without a tokenizer and for a chat that the template refuses.
std::vector<EncodedPrompt> encode_prompts(const TextModel& model, const GenerationRequest& request,
                                          std::chrono::sys_seconds now);
std::vector<TokenId> encode_only(const TextModel& model, const GenerationRequest& request,
                                 std::chrono::sys_seconds now);

/// How many tokens an answer to a prompt of this length may have. Throws RequestError when it is too long.
std::int64_t most_tokens(const TextModel& model, const GenerationRequest& request,
                         std::int64_t prompt_tokens);

/// A token by itself, as its bytes; "17 " for token 17 where there is no tokenizer.
std::string token_bytes(const TextModel& model, TokenId id);
std::string decode(const TextModel& model, std::span<const TokenId> ids, bool skip_special);

}  // namespace sextant::server
