#include "server/text_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "config/document.h"
#include "server/api_error.h"
#include "tokenizer/gguf_tokenizer.h"
#include "tokenizer/tokenizer_json.h"
#include "weights/gguf.h"
#include "weights/mapped_file.h"

namespace sextant::server {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDefaultCompletionTokens = 16;  // OpenAI's, of /v1/completions
constexpr std::string_view kThink = "<think>";
constexpr std::string_view kEndThink = "</think>";

/// What the model's makers advise, where a request says nothing.
Defaults read_defaults(const fs::path& folder) {
  Defaults defaults;
  const fs::path file = folder / "generation_config.json";
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return defaults;
  const config::Node document = config::read_document(file.string());
  const auto number = [&](const char* name, double otherwise) {
    const config::Node* node = config::require_mapping(document).find(name);
    return node == nullptr || node->is_null() ? otherwise : config::as_number(*node);
  };
  defaults.temperature = number("temperature", defaults.temperature);
  defaults.top_k = static_cast<std::int64_t>(number("top_k", 0.0));
  defaults.top_p = number("top_p", defaults.top_p);
  defaults.min_p = number("min_p", defaults.min_p);
  defaults.repetition_penalty = number("repetition_penalty", defaults.repetition_penalty);
  return defaults;
}

/// The template's source knows reasoning in tags: `text` is any file that may hold it.
bool mentions_thinking(const fs::path& folder) {
  for (const char* name : {"chat_template.jinja", "tokenizer_config.json"}) {
    std::error_code ignored;
    if (!fs::is_regular_file(folder / name, ignored)) continue;
    const std::string text = base::read_file((folder / name).string());
    if (text.find(kEndThink) != std::string::npos) return true;
  }
  return false;
}

bool gguf_has_tokenizer(const std::string& path) {
  const weights::MappedFile file(path);
  return tokenizer::has_gguf_tokenizer(weights::read_gguf(file.bytes(), path));
}

[[noreturn]] void refuse(std::string message, std::string param, std::string code = {}) {
  throw RequestError({.message = std::move(message), .param = std::move(param), .code = std::move(code)});
}

const tokenizer::Tokenizer& require_tokenizer(const TextModel& model, const std::string& param) {
  if (model.tokenizer) return *model.tokenizer;
  refuse("the model is served without a tokenizer; give the prompt as token ids", param);
}

tokenizer::RenderedChat render(const TextModel& model, const Chat& chat, std::chrono::sys_seconds now) {
  tokenizer::ChatInput input;
  input.messages = chat.input.messages;
  input.tools = chat.input.tools;
  input.documents = chat.input.documents;
  input.variables = model.template_tokens;
  input.variables.emplace_back("add_generation_prompt",
                               tokenizer::Value::boolean(chat.add_generation_prompt));
  for (const auto& variable : chat.input.variables) input.variables.push_back(variable);
  input.now = now;
  try {
    return model.chat->render(input);
  } catch (const tokenizer::TemplateError& error) {
    if (error.raised()) throw;
  }
  input.messages = chat.messages_without_null;
  return model.chat->render(input);
}

EncodedPrompt encode_chat(const TextModel& model, const GenerationRequest& request,
                          std::chrono::sys_seconds now) {
  const tokenizer::Tokenizer& tokenizer = require_tokenizer(model, "messages");
  if (!model.chat) refuse(model.no_chat_because, "messages");
  EncodedPrompt prompt;
  try {
    const tokenizer::RenderedChat chat = render(model, *request.chat, now);
    prompt.ids = tokenizer.encode(chat.text, {.add_special_tokens = request.add_special_tokens,
                                              .match = tokenizer::Match::kAll,
                                              .user_text = chat.user_text});
    prompt.text = chat.text;
    // Behind what users wrote: their own <think> opens nothing.
    const std::size_t after = chat.user_text.empty() ? 0 : chat.user_text.back().end;
    const std::string_view tail = std::string_view(chat.text).substr(after);
    const std::size_t opened = tail.rfind(kThink);
    const std::size_t closed = tail.rfind(kEndThink);
    prompt.begins_thinking = model.thinks && opened != tail.npos && (closed == tail.npos || closed < opened);
  } catch (const tokenizer::TemplateError& error) {
    refuse(fmt::format("the model's chat template refuses: {}", error.what()), "messages");
  }
  return prompt;
}

EncodedPrompt encode(const TextModel& model, const GenerationRequest& request, const Prompt& prompt) {
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt)) {
    EncodedPrompt encoded{.ids = *ids, .text = {}};
    if (request.echo) encoded.text = decode(model, *ids, false);
    return encoded;
  }
  const auto& text = std::get<std::string>(prompt);
  const tokenizer::Tokenizer& tokenizer = require_tokenizer(model, "prompt");
  return {.ids = tokenizer.encode(text, {.add_special_tokens = request.add_special_tokens,
                                         .match = tokenizer::Match::kAll,
                                         .user_text = {}}),
          .text = text};
}

}  // namespace

TextModel load_text_model(const engine::ServedModel& served) {
  TextModel model;
  model.vocabulary = served.architecture.vocabulary;
  model.longest_tokens = served.architecture.maximum_positions;
  for (const std::int64_t id : served.end_ids) model.end_ids.push_back(static_cast<TokenId>(id));
  std::error_code ignored;
  const fs::path path = served.path;
  const bool gguf = engine::is_gguf(served.path);
  const fs::path folder = fs::is_directory(path, ignored) ? path : path.parent_path();
  const std::string source = gguf ? path.string() : folder.string();
  model.no_chat_because = "the model has no chat template; use /v1/completions";
  if (!fs::exists(path, ignored)) return model;  // a shape: no files
  if (gguf ? gguf_has_tokenizer(source) : fs::is_regular_file(folder / "tokenizer.json", ignored)) {
    model.tokenizer.emplace(tokenizer::load_tokenizer(source));
  }
  if (model.tokenizer) {
    try {
      model.chat.emplace(tokenizer::load_chat_template(source));
      model.template_tokens = tokenizer::template_tokens(source);
    } catch (const base::UserError& error) {
      model.no_chat_because = fmt::format("the model cannot chat: {}", error.what());
    }
  }
  if (!gguf) {
    model.thinks = mentions_thinking(folder);
    model.defaults = read_defaults(folder);
  }
  return model;
}

std::vector<EncodedPrompt> encode_prompts(const TextModel& model, const GenerationRequest& request,
                                          std::chrono::sys_seconds now) {
  std::vector<EncodedPrompt> prompts;
  if (request.is_chat) {
    prompts.push_back(encode_chat(model, request, now));
  } else {
    for (const Prompt& prompt : request.prompts) prompts.push_back(encode(model, request, prompt));
  }
  for (const EncodedPrompt& prompt : prompts) {
    if (prompt.ids.empty()) refuse("the prompt has no token", request.is_chat ? "messages" : "prompt");
    (void)most_tokens(model, request, static_cast<std::int64_t>(prompt.ids.size()));
  }
  return prompts;
}

std::vector<TokenId> encode_only(const TextModel& model, const GenerationRequest& request,
                                 std::chrono::sys_seconds now) {
  if (request.is_chat) return encode_chat(model, request, now).ids;
  return encode(model, request, request.prompts.front()).ids;
}

std::int64_t most_tokens(const TextModel& model, const GenerationRequest& request,
                         std::int64_t prompt_tokens) {
  const std::int64_t room = model.longest_tokens - prompt_tokens;
  const std::int64_t least = request.max_tokens.value_or(1);
  if (room >= least) {
    if (request.max_tokens) return *request.max_tokens;
    return request.is_chat ? room : std::min(room, kDefaultCompletionTokens);
  }
  const std::string asked = request.max_tokens
                                ? fmt::format(" and {} for the answer ({})", least, request.max_tokens_name)
                                : ", which leaves no room for an answer";
  refuse(fmt::format("this model's context is {} tokens; the request has {} tokens of prompt{}. Shorten the "
                     "prompt{}.",
                     model.longest_tokens, prompt_tokens, asked,
                     request.max_tokens ? " or lower " + request.max_tokens_name : ""),
         request.max_tokens && prompt_tokens < model.longest_tokens
             ? request.max_tokens_name
             : (request.is_chat ? "messages" : "prompt"),
         "context_length_exceeded");
}

std::string token_bytes(const TextModel& model, TokenId id) {
  if (!model.tokenizer) return fmt::format("{} ", id);
  return std::string(model.tokenizer->token_bytes().of(id, false));
}

std::string decode(const TextModel& model, std::span<const TokenId> ids, bool skip_special) {
  if (model.tokenizer) return model.tokenizer->decode(ids, skip_special);
  std::string text;
  for (const TokenId id : ids) text += token_bytes(model, id);
  return text;
}

}  // namespace sextant::server
