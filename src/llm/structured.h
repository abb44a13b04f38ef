// Answers in JSON that are what was asked for, or a fault.
//
//   const StructuredReply answer = ask_structured(client, request, {
//       .output = {.name = "proposals", .schema = kSchema},
//       .check = [&](const std::string& json) { return problems_of(json); }});   // what a schema cannot say
//   if (answer.ok()) use(answer.json);
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "llm/client.h"
#include "llm/tool_loop.h"

namespace sextant::llm {

struct StructuredStep {
  OutputSchema output{};
  /// Further conditions on JSON that matches the schema: what is wrong with it, one sentence each; empty:
  /// accepted.
  std::function<std::vector<std::string>(const std::string& json)> check{};
  int most_reasks = 2;  ///< how often the model is told what is wrong and asked again
};

struct StructuredReply {
  std::string json{};                   ///< valid when ok()
  std::optional<Fault> fault{};         ///< of the call, or kInvalid when the answers stayed wrong
  std::vector<std::string> problems{};  ///< of the last answer
  std::vector<Message> messages{};      ///< the whole conversation
  std::vector<Reply> replies{};         ///< last of each ask
  Amount charged{};

  bool ok() const { return !fault.has_value(); }
};

/// Asks for JSON of the schema by the provider's own means where it has any, else by the prompt. The answer
/// is found in whatever surrounds it (find_json), checked against the schema and by `check`, and asked for
/// again with the problems. An answer that ends too early is asked for once more only. With `handlers` the
/// model may first call tools.
StructuredReply ask_structured(Client& client, Request request, const StructuredStep& step,
                               const std::vector<ToolHandler>& handlers = {}, const Call& call = {});

/// One element of a list that a model gave.
struct Item {
  std::size_t index = 0;  ///< in the model's list: what it is known by, whatever happens to others
  std::string json{};
  std::vector<std::string> problems{};  ///< empty: accepted
};

/// The elements of the JSON list under `key` of the object `json`, each judged by itself, so that a bad one
/// costs nothing but itself: against `item_schema` (may be empty), then by `check` (may be empty).
std::vector<Item> judged_items(
    const std::string& json, const std::string& key, const std::string& item_schema,
    const std::function<std::vector<std::string>(const std::string& item)>& check = {});

}  // namespace sextant::llm
