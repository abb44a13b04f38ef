// Where a model is spoken to, and in which dialect.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "http/message.h"

namespace sextant::llm {

enum class Wire : std::uint8_t {
  kChat,       ///< OpenAI Chat Completions
  kResponses,  ///< OpenAI Responses
  kAnthropic,  ///< Anthropic Messages
  kGemini,     ///< Google generateContent
  kOllama,     ///< Ollama /api/chat
};

/// How a JSON schema is made to hold, strictest first.
enum class SchemaMode : std::uint8_t {
  kNative,      ///< the provider's own schema-bound output
  kTool,        ///< the answer is the arguments of a tool that must be called
  kJsonObject,  ///< any JSON object, and the schema in the prompt
  kPrompt,      ///< the schema in the prompt
};

/// Where one provider's dialect of a wire format differs. Read from data/llm/providers.yaml.
struct Quirks {
  std::string max_tokens_name = "max_tokens";  ///< chat: or "max_completion_tokens"
  std::string seed_name = "seed";
  std::string required_name = "required";  ///< chat: the tool_choice that demands a call
  SchemaMode schema_mode = SchemaMode::kNative;
  bool stream_usage = true;         ///< chat: ask for usage in streams by stream_options
  bool short_tool_ids = false;      ///< tool call ids must be nine letters and digits
  bool require_parameters = false;  ///< OpenRouter: only upstream providers that honour all parameters
  bool reasoning_apart = false;     ///< completion_tokens leave reasoning out
  bool deployment_path = false;     ///< Azure: the model stands in the path
  std::string api_version{};        ///< Azure's query, Anthropic's header
  std::vector<std::string> returned_fields{};  ///< fields of an assistant's message to give back
  std::set<std::string> omit{};                ///< parameters that the model does not accept
  bool operator==(const Quirks&) const = default;
};

struct Endpoint {
  std::string provider{};
  std::string model{};  ///< as the provider names it
  Wire wire = Wire::kChat;
  std::string base_url{};  ///< without a slash at its end
  std::vector<http::Header> headers{};
  std::vector<http::SecretHeader> secret_headers{};
  std::string key_source{};  ///< the variable that the key came from; empty: there is none
  bool key_required = true;
  Quirks quirks{};

  std::string name() const { return provider + "/" + model; }
};

/// What refusals of earlier requests have taught about one endpoint.
struct Learned {
  std::map<std::string, std::string> renamed{};  ///< parameters sent under another name
  std::set<std::string> dropped{};               ///< parameters not sent
  int schema_steps = 0;                          ///< how many modes below the endpoint's own
};

}  // namespace sextant::llm
