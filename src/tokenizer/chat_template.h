// Chat templates: a conversation as the text that a model was trained on.
//
// Templates are Jinja, in the environment of Hugging Face's apply_chat_template: trim_blocks, lstrip_blocks,
// loop controls,
// {% generation %}, tojson without HTML escapes, raise_exception, strftime_now. Messages are passed as they
// are given.
//
// The rendered text knows which of its bytes users wrote. Give it to Tokenizer::encode with these ranges and
// Match::kAll: control tokens come from the template alone, and a user who types <|im_start|> has typed text.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/template_syntax.h"
#include "tokenizer/template_value.h"

namespace sextant::tokenizer {

struct ChatInput {
  Value messages;
  Value tools = Value(None{});
  Value documents = Value(None{});
  /// Others by name, such as add_generation_prompt, bos_token, enable_thinking. Text of users must be marked
  /// as such (Value::text(…, true), value_of_json(…, true)).
  std::vector<std::pair<std::string, Value>> variables;
  std::chrono::sys_seconds now{};  ///< for strftime_now
};

struct RenderedChat {
  std::string text;
  std::vector<ByteRange> user_text;  ///< sorted, disjoint
};

class ChatTemplate {
 public:
  /// Throws base::UserError naming `file` and line for a template that is wrong or uses what is not
  /// supported.
  ChatTemplate(std::string_view source, const std::string& file);

  /// Throws TemplateError: raised() when the template called raise_exception. Safe to use from several
  /// threads.
  RenderedChat render(const ChatInput& input) const;

 private:
  Block block_;
};

/// The template of a model: chat_template.jinja beside, or chat_template in tokenizer_config.json of the
/// folder (the one named "default" where there are several), tokenizer.chat_template of a GGUF file, or
/// `path` itself when it is another file. Throws base::UserError when there is none.
ChatTemplate load_chat_template(const std::string& path);

/// bos_token, eos_token, pad_token and unk_token of the folder's tokenizer_config.json or of a GGUF file, as
/// variables of the template; none when the file is missing.
std::vector<std::pair<std::string, Value>> template_tokens(const std::string& path);

/// A JSON value; its texts are the users' or not. Throws base::UserError for what is no JSON.
Value value_of_json(std::string_view json, bool user);

}  // namespace sextant::tokenizer
