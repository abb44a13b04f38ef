// A conversation in which the model may call functions of the program.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "llm/client.h"

namespace sextant::llm {

struct ToolResult {
  std::string text{};
  bool failed = false;  ///< the model is told that `text` is what went wrong
};

struct ToolHandler {
  Tool tool{};
  /// Receives the arguments as a JSON object that matches the tool's schema. A std::exception becomes a
  /// failed result with its message.
  std::function<ToolResult(const std::string& arguments)> run{};
};

struct ToolLoopReply {
  Reply reply{};                    ///< the last one: text without further calls, or a fault
  std::vector<Message> messages{};  ///< the whole conversation, the last answer included when there is one
  int rounds = 0;                   ///< answers that held calls
  Amount charged{};
};

/// Asks, runs the tools that the answer calls, gives their results back, and so on until the model answers
/// without calls. Calls whose arguments are no JSON, do not match the schema, or name no tool are not run:
/// the model is told why. After `most_rounds` answers with calls, one more answer is asked for without tools.
ToolLoopReply run_tools(Client& client, Request request, const std::vector<ToolHandler>& handlers,
                        const Call& call = {}, int most_rounds = 16);

}  // namespace sextant::llm
