#include "llm/tool_loop.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>

#include "base/text.h"
#include "llm/schema.h"

namespace sextant::llm {
namespace {

ToolResult run_call(const ToolCall& call, const std::vector<ToolHandler>& handlers) {
  const auto handler =
      std::ranges::find_if(handlers, [&](const ToolHandler& known) { return known.tool.name == call.name; });
  if (handler == handlers.end()) {
    std::vector<std::string> names;
    for (const ToolHandler& known : handlers) names.push_back(known.tool.name);
    return {fmt::format("there is no tool \"{}\"; there are {}", call.name, base::join(names, ", ")), true};
  }
  if (!call.fault.empty()) return {call.fault, true};
  const std::vector<std::string> problems = schema_problems(handler->tool.parameters, call.arguments);
  if (!problems.empty())
    return {"the arguments do not match the schema: " + base::join(problems, "; "), true};
  try {
    return handler->run(call.arguments);
  } catch (const std::exception& error) {
    return {error.what(), true};
  }
}

}  // namespace

ToolLoopReply run_tools(Client& client, Request request, const std::vector<ToolHandler>& handlers,
                        const Call& call, int most_rounds) {
  for (const ToolHandler& handler : handlers) request.tools.push_back(handler.tool);
  ToolLoopReply result;
  for (;;) {
    if (result.rounds >= most_rounds) request.tool_use = ToolUse::kNone;
    result.reply = client.complete(request, call);
    result.charged.tokens += result.reply.charged.tokens;
    result.charged.usd += result.reply.charged.usd;
    if (!result.reply.ok()) break;
    const Response& response = result.reply.response;
    request.messages.push_back(assistant_message(response));
    if (response.tool_calls.empty() || result.rounds >= most_rounds) break;
    ++result.rounds;
    for (const ToolCall& wanted : response.tool_calls) {
      const ToolResult done = run_call(wanted, handlers);
      request.messages.push_back(tool_message(wanted, done.text, done.failed));
    }
    // Whoever demands a call wants one, not calls for ever.
    if (request.tool_use == ToolUse::kRequired) request.tool_use = ToolUse::kAuto;
  }
  result.messages = std::move(request.messages);
  return result;
}

}  // namespace sextant::llm
