// What is said to a model and what it answers, the same for every provider.
//
// JSON travels as text: a schema, the arguments of a tool call and a structured answer are strings that hold
// JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sextant::llm {

enum class Role : std::uint8_t { kSystem, kUser, kAssistant, kTool };

/// A function that the model wants to have called.
struct ToolCall {
  std::string id{};
  std::string name{};
  std::string arguments = "{}";  ///< a JSON object
  /// Not empty: what the model wrote is no JSON object. The call must not be run; the model is told this
  /// text.
  std::string fault{};
  bool operator==(const ToolCall&) const = default;
};

/// The answer in the provider's own form, to be given back to it unchanged in the next request: it can hold
/// signed reasoning without which the provider refuses to go on.
struct Native {
  std::string wire{};  ///< which format and model; others ignore it
  std::string json{};
  bool operator==(const Native&) const = default;
};

struct Message {
  Role role = Role::kUser;
  std::string text{};
  std::vector<ToolCall> tool_calls{};  ///< of an assistant
  std::string tool_call_id{};          ///< of a tool: which call this answers
  std::string tool_name{};             ///< of a tool
  bool tool_failed = false;            ///< of a tool: `text` says what went wrong
  Native native{};                     ///< of an assistant
};

Message system_message(std::string text);
Message user_message(std::string text);

struct Tool {
  std::string name{};
  std::string description{};
  std::string parameters = R"({"type":"object","properties":{}})";  ///< JSON schema
};

enum class ToolUse : std::uint8_t { kAuto, kNone, kRequired };

/// The answer must be JSON of this schema.
struct OutputSchema {
  std::string name = "answer";  ///< letters, digits and underscores
  std::string schema{};         ///< JSON schema of an object
  std::string description{};
};

struct Request {
  std::vector<Message> messages{};
  std::vector<Tool> tools{};
  ToolUse tool_use = ToolUse::kAuto;
  std::optional<OutputSchema> output{};
  std::int64_t max_output_tokens = 4096;  ///< reasoning included
  // Sent only when set: many models accept no value but their own.
  std::optional<double> temperature{};
  std::optional<double> top_p{};
  std::optional<std::int64_t> seed{};
  std::string effort{};  ///< "low", "medium", "high"
  std::vector<std::string> stop{};
};

enum class Finish : std::uint8_t {
  kStop,       ///< the model has said all
  kLength,     ///< cut off at the limit of tokens
  kToolCalls,  ///< it waits for results
  kRefused,    ///< the model or a filter declined
  kOther,
};

/// Tokens as the provider counts them.
struct Usage {
  std::int64_t input_tokens = 0;         ///< all of the prompt, cached or not
  std::int64_t cached_input_tokens = 0;  ///< of these, read from a cache
  std::int64_t cache_write_tokens = 0;   ///< of these, written to a cache
  std::int64_t output_tokens = 0;        ///< reasoning included
  std::int64_t reasoning_tokens = 0;     ///< of these
  bool reported = false;                 ///< false: the provider said nothing
  std::optional<double> cost_usd{};      ///< where the provider says what it charged
  bool operator==(const Usage&) const = default;
};

struct Response {
  std::string text{};
  std::string reasoning{};  ///< where the provider shows it
  std::string refusal{};    ///< the model's own words, or the filter's name
  std::vector<ToolCall> tool_calls{};
  Finish finish = Finish::kStop;
  std::string finish_text{};  ///< as the provider names it
  Usage usage{};
  std::string id{};
  std::string model{};  ///< which one answered, as the provider says
  Native native{};
};

/// The answer as a message of the conversation that follows.
Message assistant_message(const Response& response);

/// The result of a tool call as such a message.
Message tool_message(const ToolCall& call, std::string text, bool failed = false);

}  // namespace sextant::llm
