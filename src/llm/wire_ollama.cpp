// Ollama's own format, /api/chat.
//
// Source: docs.ollama.com/api (chat, structured outputs, tool calling, thinking). Ollama cuts prompts that
// exceed its context window without a word, and the window is small by default, so the request names one that
// suffices.
#include <algorithm>

#include "llm/wire_format.h"

namespace sextant::llm {
namespace {

constexpr std::int64_t kWindowStep = 4096;  // also Ollama's default for small machines
constexpr std::int64_t kBytesPerToken = 3;  // dense text such as JSON; prose has four

Json message_json(const Message& message) {
  static constexpr const char* kRoles[] = {"system", "user", "assistant", "tool"};
  Json json = {{"role", kRoles[static_cast<std::size_t>(message.role)]},
               {"content", message.tool_failed ? "error: " + message.text : message.text}};
  if (message.role == Role::kTool) json["tool_name"] = message.tool_name;
  for (const ToolCall& call : message.tool_calls) {
    Json arguments = parse_or_discarded(call.arguments);
    if (!arguments.is_object()) arguments = Json::object();
    json["tool_calls"].push_back({{"function", {{"name", call.name}, {"arguments", arguments}}}});
  }
  return json;
}

std::int64_t window_tokens(const Json& body, const Request& request) {
  const auto prompt_bytes = static_cast<std::int64_t>(dump(body).size());
  const std::int64_t needed = prompt_bytes / kBytesPerToken + request.max_output_tokens;
  return (needed + kWindowStep - 1) / kWindowStep * kWindowStep;
}

Usage usage_of(const Json& body) {
  Usage usage;
  usage.reported = at(body, "eval_count").is_number();
  usage.input_tokens = count_at(body, "prompt_eval_count");
  usage.output_tokens = count_at(body, "eval_count");
  return usage;
}

}  // namespace

WireBody ollama_body(const Request& request, const Endpoint& endpoint, bool stream) {
  Json body = {{"model", endpoint.model}, {"messages", Json::array()}, {"stream", stream}};
  for (const Message& message : request.messages) body["messages"].push_back(message_json(message));
  for (const Tool& tool : request.tools) {
    if (request.tool_use == ToolUse::kNone) break;  // there is no tool_choice
    body["tools"].push_back({{"type", "function"},
                             {"function",
                              {{"name", tool.name},
                               {"description", tool.description},
                               {"parameters", own_json(tool.parameters)}}}});
  }
  if (request.output && endpoint.quirks.schema_mode == SchemaMode::kNative) {
    body["format"] = own_json(request.output->schema);
  } else if (request.output && endpoint.quirks.schema_mode == SchemaMode::kJsonObject) {
    body["format"] = "json";
  }
  if (!request.effort.empty()) body["think"] = request.effort;
  Json options = {{"num_predict", request.max_output_tokens}, {"num_ctx", window_tokens(body, request)}};
  if (request.temperature) options["temperature"] = *request.temperature;
  if (request.top_p) options["top_p"] = *request.top_p;
  if (request.seed) options["seed"] = *request.seed;
  if (!request.stop.empty()) options["stop"] = request.stop;
  body["options"] = options;
  return {std::move(body), "/api/chat"};
}

Parsed parse_ollama(const Json& body) {
  Parsed parsed;
  Response& response = parsed.response;
  if (!at(body, "error").is_null()) {
    parsed.fault = read_inner_fault(dump(body));
    return parsed;
  }
  response.model = text_at(body, "model");
  response.usage = usage_of(body);
  const Json& message = at(body, "message");
  if (!message.is_object()) {
    parsed.fault = bad_reply("no message");
    return parsed;
  }
  response.text = text_at(message, "content");
  response.reasoning = text_at(message, "thinking");
  add_function_calls(message, response.tool_calls);
  complete_ids(response.tool_calls);
  response.finish_text = text_at(body, "done_reason");
  response.finish = response.finish_text == "length" ? Finish::kLength : Finish::kStop;
  if (!response.tool_calls.empty() && response.finish == Finish::kStop) response.finish = Finish::kToolCalls;
  return parsed;
}

namespace {

/// Lines of JSON; the last has "done": true and the counts.
class OllamaStream : public StreamReader {
 public:
  void feed(std::string_view portion, const OnText& on_text) override {
    for (const std::string& line : lines_.feed(portion)) take(line, on_text);
    if (lines_.overflowed()) fault_ = bad_reply("a line without end");
  }

  Parsed finish() override {
    if (!done_) take(lines_.rest(), {});
    Json body = last_;
    body["message"] = {{"content", text_}, {"thinking", thinking_}, {"tool_calls", calls_}};
    Parsed parsed = parse_ollama(body);
    if (fault_) parsed.fault = fault_;
    if (!parsed.fault && !done_) parsed.fault = cut_stream();
    return parsed;
  }

 private:
  void take(const std::string& line, const OnText& on_text) {
    if (fault_ || done_ || line.empty()) return;
    const Json data = parse_or_discarded(line);
    if (!data.is_object()) {
      fault_ = &line == &lines_.rest() ? cut_stream() : bad_reply("a line that is no JSON object");
      return;
    }
    if (!at(data, "error").is_null()) {
      fault_ = read_inner_fault(dump(data));
      return;
    }
    const Json& message = at(data, "message");
    const std::string text = text_at(message, "content");
    text_ += text;
    if (!text.empty() && on_text) on_text(text);
    thinking_ += text_at(message, "thinking");
    if (at(message, "tool_calls").is_array()) {
      for (const Json& call : at(message, "tool_calls")) calls_.push_back(call);
    }
    if (at(data, "done") == Json(true)) {
      done_ = true;
      last_ = data;
    }
  }

  http::LineSplitter lines_;
  std::string text_, thinking_;
  Json calls_ = Json::array();
  Json last_ = Json::object();
  bool done_ = false;
  std::optional<Fault> fault_;
};

}  // namespace

std::unique_ptr<StreamReader> ollama_stream() { return std::make_unique<OllamaStream>(); }

}  // namespace sextant::llm
