#include "cli/generate_prompts.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "config/document.h"
#include "engine/served_model.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/gguf_tokenizer.h"
#include "tokenizer/tokenizer_json.h"
#include "weights/gguf.h"
#include "weights/mapped_file.h"

namespace sextant::cli {
namespace {

using batching::TokenId;

TokenId token_id(const config::Node& node) {
  const std::int64_t id = config::as_integer(node);
  if (id >= 0 && id <= std::numeric_limits<TokenId>::max()) return static_cast<TokenId>(id);
  throw base::UserError(node.position, node.path, fmt::format("{} is no token id", id));
}

/// A list of ids, or of such lists.
Prompts read_token_ids(const std::string& file) {
  const config::Node document = config::parse_json(base::read_file(file), file);
  config::require_sequence(document);
  const bool nested = !document.items.empty() && document.items.front().kind == config::Node::Kind::kSequence;
  Prompts prompts;
  if (!nested) prompts.emplace_back();
  for (const config::Node& item : document.items) {
    if (!nested) {
      prompts.front().push_back(token_id(item));
      continue;
    }
    prompts.emplace_back();
    for (const config::Node& id : config::require_sequence(item).items)
      prompts.back().push_back(token_id(id));
  }
  return prompts;
}

/// One message as the model's template renders it, control tokens of the template alone.
std::vector<TokenId> encode_chat(const std::string& message, const std::string& folder,
                                 const tokenizer::Tokenizer& tokenizer) {
  const nlohmann::ordered_json messages = {{{"role", "user"}, {"content", message}}};
  tokenizer::ChatInput input;
  input.messages = tokenizer::value_of_json(messages.dump(), true);
  input.variables = tokenizer::template_tokens(folder);
  input.variables.emplace_back("add_generation_prompt", tokenizer::value_of_json("true", false));
  input.now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  try {
    const tokenizer::RenderedChat chat = tokenizer::load_chat_template(folder).render(input);
    return tokenizer.encode(chat.text, {.user_text = chat.user_text});
  } catch (const tokenizer::TemplateError& error) {
    throw base::UserError({folder}, "chat_template", error.what());
  }
}

}  // namespace

std::optional<tokenizer::Tokenizer> find_tokenizer(const std::string& model) {
  std::error_code ignored;
  if (engine::is_gguf(model)) {
    const weights::MappedFile file(model);
    if (!tokenizer::has_gguf_tokenizer(weights::read_gguf(file.bytes(), model))) return {};
  } else if (!std::filesystem::is_regular_file(std::filesystem::path(model) / "tokenizer.json", ignored)) {
    return {};
  }
  return tokenizer::load_tokenizer(model);
}

std::string prompts_name(const PromptFlags& flags) {
  if (!flags.token_ids.empty()) return flags.token_ids;
  if (!flags.text_file.empty()) return flags.text_file;
  return flags.chats.empty() ? "--prompt" : "--chat";
}

Prompts read_prompts(const PromptFlags& flags, const std::string& folder,
                     const std::optional<tokenizer::Tokenizer>& tokenizer) {
  const int forms = int{!flags.texts.empty()} + int{!flags.text_file.empty()} + int{!flags.chats.empty()} +
                    int{!flags.token_ids.empty()};
  if (forms != 1) {
    throw base::UserError(
        fmt::format("{} of --prompt, --prompt-file, --chat and --token-ids; give one of them",
                    forms == 0 ? "none" : "several"));
  }
  if (!flags.token_ids.empty()) return read_token_ids(flags.token_ids);
  if (!tokenizer) {
    throw base::UserError(
        {prompts_name(flags)}, {},
        fmt::format("needs a tokenizer, and {} has none (tokenizer.json, or the metadata of "
                    "a GGUF file); add it, or give --token-ids",
                    folder));
  }
  Prompts prompts;
  for (const std::string& chat : flags.chats) prompts.push_back(encode_chat(chat, folder, *tokenizer));
  std::vector<std::string> texts = flags.texts;
  if (!flags.text_file.empty()) texts.push_back(base::read_file(flags.text_file));
  for (const std::string& text : texts) {
    tokenizer::EncodeOptions options;
    options.add_special_tokens = true;
    prompts.push_back(tokenizer->encode(text, options));
  }
  return prompts;
}

}  // namespace sextant::cli
