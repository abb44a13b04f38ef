#include "llm/message.h"

#include <utility>

namespace sextant::llm {

Message system_message(std::string text) { return {.role = Role::kSystem, .text = std::move(text)}; }
Message user_message(std::string text) { return {.role = Role::kUser, .text = std::move(text)}; }

Message assistant_message(const Response& response) {
  return {.role = Role::kAssistant,
          .text = response.text.empty() ? response.refusal : response.text,
          .tool_calls = response.tool_calls,
          .native = response.native};
}

Message tool_message(const ToolCall& call, std::string text, bool failed) {
  return {.role = Role::kTool,
          .text = std::move(text),
          .tool_call_id = call.id,
          .tool_name = call.name,
          .tool_failed = failed};
}

}  // namespace sextant::llm
