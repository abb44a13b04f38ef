// Requests of the OpenAI API as values: the one place where their JSON is read.
//
// Parameters beyond OpenAI's are those that other open servers use: top_k, min_p, repetition_penalty,
// ignore_eos, stop_token_ids, add_special_tokens, skip_special_tokens, return_token_ids, priority,
// cache_salt, chat_template_kwargs, documents, add_generation_prompt, continue_final_message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "batching/plan.h"
#include "kernels/sampling.h"
#include "tokenizer/chat_template.h"

namespace sextant::server {

using batching::TokenId;

/// A prompt of /v1/completions: text, or token ids.
using Prompt = std::variant<std::string, std::vector<TokenId>>;

/// The parts of a chat; `input` lacks the model's own variables.
struct Chat {
  tokenizer::ChatInput input;
  /// The same with "" where a message has no content; for templates that cannot print nothing.
  tokenizer::Value messages_without_null;
  bool add_generation_prompt = true;
};

/// Where a request says nothing.
struct Defaults {
  double temperature = 1.0;
  std::int64_t top_k = 0;
  double top_p = 1.0;
  double min_p = 0.0;
  double repetition_penalty = 1.0;
};

struct GenerationRequest {
  bool is_chat = false;
  std::string model;            ///< as asked for; empty: any
  std::vector<Prompt> prompts;  ///< of completions
  std::optional<Chat> chat;

  std::int64_t choices = 1;                ///< n, for each prompt
  std::optional<std::int64_t> max_tokens;  ///< none: completions 16, chats what the context holds
  std::string max_tokens_name = "max_tokens";
  kernels::SamplingParameters sampling;  ///< without seed unless `seeded`
  bool seeded = false;
  std::vector<std::string> stop;
  std::vector<TokenId> stop_token_ids;
  bool ignore_end = false;
  std::int64_t logprobs = -1;  ///< alternatives of each token; -1: none are told
  bool echo = false;
  bool add_special_tokens = true;
  bool skip_special_tokens = true;
  bool return_token_ids = false;

  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;

  std::int64_t priority = 0;
  std::string cache_salt;
  std::vector<std::string> ignored;  ///< parameters that nobody here knows
};

/// Both throw base::UserError with the key path, or RequestError, for what cannot be served as asked. The
/// `vocabulary` bounds token ids.
GenerationRequest parse_completion_request(std::string_view body, const Defaults& defaults,
                                           std::int64_t vocabulary);
GenerationRequest parse_chat_request(std::string_view body, const Defaults& defaults,
                                     std::int64_t vocabulary);

/// /tokenize: {"prompt", "add_special_tokens"?} or a chat; `prompts` then holds one text.
struct TokenizeRequest {
  GenerationRequest parts;
  bool return_token_strings = false;
};
TokenizeRequest parse_tokenize_request(std::string_view body);

/// /detokenize: {"tokens"}.
std::vector<TokenId> parse_detokenize_request(std::string_view body, std::int64_t vocabulary);

}  // namespace sextant::server
