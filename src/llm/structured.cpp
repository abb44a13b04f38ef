#include "llm/structured.h"

#include <fmt/core.h>

#include "base/text.h"
#include "llm/json.h"
#include "llm/json_text.h"
#include "llm/schema.h"

namespace sextant::llm {
namespace {

/// What an answer's text comes to.
struct Judged {
  std::string json{};
  std::vector<std::string> problems{};
  bool truncated = false;
};

Judged judge(const std::string& text, const StructuredStep& step) {
  FoundJson found = find_json(text);
  if (!found.problem.empty()) return {.problems = {found.problem}, .truncated = found.truncated};
  Judged judged{.json = std::move(found.json)};
  judged.problems = schema_problems(step.output.schema, judged.json);
  if (judged.problems.empty() && step.check) judged.problems = step.check(judged.json);
  return judged;
}

/// The schema is repeated: a provider that ignored it the first time has not shown it to the model.
std::string complaint(const std::vector<std::string>& problems, const OutputSchema& output) {
  return fmt::format(
      "That answer cannot be used:\n- {}\nAnswer again with the whole corrected JSON object and nothing "
      "else. It must "
      "match this JSON schema:\n{}",
      base::join(problems, "\n- "), output.schema);
}

Fault invalid(const Judged& judged, int asked) {
  return {
      .kind = FaultKind::kInvalid,
      .message = fmt::format("invalid answer, asked {} times: {}", asked, base::join(judged.problems, "; "))};
}

}  // namespace

StructuredReply ask_structured(Client& client, Request request, const StructuredStep& step,
                               const std::vector<ToolHandler>& handlers, const Call& call) {
  request.output = step.output;
  StructuredReply result;
  bool was_truncated = false;
  for (int asked = 1;; ++asked) {
    ToolLoopReply round = run_tools(client, request, handlers, call);
    result.charged.tokens += round.charged.tokens;
    result.charged.usd += round.charged.usd;
    request.messages = round.messages;
    result.messages = std::move(round.messages);
    result.replies.push_back(round.reply);
    if (!round.reply.ok()) {
      result.fault = round.reply.fault;
      return result;
    }
    Judged judged = judge(round.reply.response.text, step);
    result.problems = judged.problems;
    if (judged.problems.empty()) {
      result.json = std::move(judged.json);
      return result;
    }
    if (asked > step.most_reasks || (judged.truncated && was_truncated)) {
      result.fault = invalid(judged, asked);
      return result;
    }
    was_truncated = judged.truncated;
    request.messages.push_back(user_message(complaint(judged.problems, step.output)));
    if (call.on_restart) call.on_restart();
  }
}

std::vector<Item> judged_items(
    const std::string& json, const std::string& key, const std::string& item_schema,
    const std::function<std::vector<std::string>(const std::string& item)>& check) {
  std::vector<Item> items;
  const Json document = parse_or_discarded(json);
  const Json& list = at(document, key);
  if (!list.is_array()) return items;
  for (std::size_t index = 0; index < list.size(); ++index) {
    Item item{.index = index, .json = dump(list[index])};
    if (!item_schema.empty()) item.problems = schema_problems(item_schema, item.json);
    if (item.problems.empty() && check) item.problems = check(item.json);
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace sextant::llm
