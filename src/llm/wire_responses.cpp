// OpenAI Responses.
//
// Source: platform.openai.com/docs/api-reference/responses and …/responses-streaming. Nothing is stored with
// the provider (store: false), so reasoning is asked for in encrypted form and given back with the
// conversation.
#include <algorithm>

#include "llm/wire_format.h"

namespace sextant::llm {
namespace {

void append_assistant(const Message& message, Json& input) {
  if (message.native.wire == "responses") {
    for (const Json& item : own_json(message.native.json)) input.push_back(item);
    return;
  }
  if (!message.text.empty()) input.push_back({{"role", "assistant"}, {"content", message.text}});
  for (const ToolCall& call : message.tool_calls) {
    input.push_back({{"type", "function_call"},
                     {"call_id", call.id},
                     {"name", call.name},
                     {"arguments", call.arguments}});
  }
}

Json input_items(const Request& request) {
  Json input = Json::array();
  for (const Message& message : request.messages) {
    switch (message.role) {
      case Role::kSystem:
        input.push_back({{"role", "system"}, {"content", message.text}});
        break;
      case Role::kUser:
        input.push_back({{"role", "user"}, {"content", message.text}});
        break;
      case Role::kAssistant:
        append_assistant(message, input);
        break;
      case Role::kTool:
        input.push_back({{"type", "function_call_output"},
                         {"call_id", message.tool_call_id},
                         {"output", message.tool_failed ? "error: " + message.text : message.text}});
        break;
    }
  }
  return input;
}

void add_tools(const Request& request, Json& body) {
  if (request.tools.empty()) return;
  Json& tools = body["tools"] = Json::array();
  for (const Tool& tool : request.tools) {
    tools.push_back({{"type", "function"},
                     {"name", tool.name},
                     {"description", tool.description},
                     {"parameters", own_json(tool.parameters)},
                     {"strict", false}});
  }
  if (request.tool_use == ToolUse::kNone) body["tool_choice"] = "none";
  if (request.tool_use == ToolUse::kRequired) body["tool_choice"] = "required";
}

Usage usage_of(const Json& json) {
  Usage usage;
  if (!json.is_object()) return usage;
  usage.reported = true;
  usage.input_tokens = count_at(json, "input_tokens");
  usage.cached_input_tokens = count_at(at(json, "input_tokens_details"), "cached_tokens");
  usage.cache_write_tokens = count_at(at(json, "input_tokens_details"), "cache_write_tokens");
  usage.output_tokens = count_at(json, "output_tokens");
  usage.reasoning_tokens = count_at(at(json, "output_tokens_details"), "reasoning_tokens");
  return usage;
}

void read_item(const Json& item, Response& response) {
  const std::string type = text_at(item, "type");
  if (type == "function_call") {
    response.tool_calls.push_back(
        tool_call(text_at(item, "call_id"), text_at(item, "name"), at(item, "arguments")));
  } else if (type == "reasoning") {
    const Json& summary = at(item, "summary");
    if (!summary.is_array()) return;
    for (const Json& part : summary) response.reasoning += text_at(part, "text");
  } else if (type == "message" && at(item, "content").is_array()) {
    for (const Json& part : at(item, "content")) response.refusal += text_at(part, "refusal");
    response.text += text_of_content(at(item, "content"));
  }
}

void read_status(const Json& body, Response& response) {
  const std::string reason = text_at(at(body, "incomplete_details"), "reason");
  response.finish_text = reason.empty() ? text_at(body, "status") : reason;
  if (reason == "max_output_tokens") {
    response.finish = Finish::kLength;
  } else if (reason == "content_filter" || (!response.refusal.empty() && response.text.empty())) {
    response.finish = Finish::kRefused;
    if (response.refusal.empty()) response.refusal = "content filter";
  } else if (!response.tool_calls.empty()) {
    response.finish = Finish::kToolCalls;
  } else {
    response.finish = reason.empty() ? Finish::kStop : Finish::kOther;
  }
}

}  // namespace

WireBody responses_body(const Request& request, const Endpoint& endpoint, bool stream) {
  Json body = {{"model", endpoint.model},
               {"input", input_items(request)},
               {"max_output_tokens", request.max_output_tokens},
               {"store", false}};
  if (!endpoint.quirks.omit.contains("include"))
    body["include"] = Json::array({"reasoning.encrypted_content"});
  if (request.temperature) body["temperature"] = *request.temperature;
  if (request.top_p) body["top_p"] = *request.top_p;
  if (!request.effort.empty()) body["reasoning"] = {{"effort", request.effort}};
  if (request.output && endpoint.quirks.schema_mode == SchemaMode::kNative) {
    body["text"]["format"] = {{"type", "json_schema"},
                              {"name", request.output->name},
                              {"schema", own_json(request.output->schema)},
                              {"strict", false}};
  } else if (request.output && endpoint.quirks.schema_mode == SchemaMode::kJsonObject) {
    body["text"]["format"] = {{"type", "json_object"}};
  }
  add_tools(request, body);
  if (stream) body["stream"] = true;
  return {std::move(body), endpoint.quirks.deployment_path ? "/openai/v1/responses" : "/responses"};
}

Parsed parse_responses(const Json& body) {
  Parsed parsed;
  Response& response = parsed.response;
  response.id = text_at(body, "id");
  response.model = text_at(body, "model");
  response.usage = usage_of(at(body, "usage"));
  if (!at(body, "error").is_null()) {
    parsed.fault = read_inner_fault(dump(body));
    return parsed;
  }
  const Json& output = at(body, "output");
  if (!output.is_array()) {
    parsed.fault = bad_reply("no output");
    return parsed;
  }
  for (const Json& item : output) read_item(item, response);
  complete_ids(response.tool_calls);
  read_status(body, response);
  response.native = {"responses", dump(output)};
  return parsed;
}

namespace {

/// The last event carries the whole response; some servers leave its output empty, so items are kept as they
/// end.
class ResponsesStream : public EventReader {
 public:
  Parsed finish() override {
    if (fault_) return {{}, fault_};
    if (whole_.is_null()) {
      Parsed cut{{.text = text_}, cut_stream()};
      return cut;
    }
    if (!at(whole_, "output").is_array() || at(whole_, "output").empty()) whole_["output"] = items_;
    return parse_responses(whole_);
  }

 private:
  void take(const std::string& event, const Json& data, const OnText& on_text) override {
    const std::string type = text_at(data, "type").empty() ? event : text_at(data, "type");
    if (type == "response.output_text.delta") {
      text_ += text_at(data, "delta");
      if (on_text) on_text(text_at(data, "delta"));
    } else if (type == "response.output_item.done") {
      items_.push_back(at(data, "item"));
    } else if (type == "response.completed" || type == "response.incomplete" || type == "response.failed") {
      if (at(data, "response").is_object()) whole_ = at(data, "response");
    } else if (type == "error") {
      fault_ = read_inner_fault(dump(data));
    }
  }

  std::string text_;
  Json items_ = Json::array();
  Json whole_;
};

}  // namespace

std::unique_ptr<StreamReader> responses_stream() { return std::make_unique<ResponsesStream>(); }

}  // namespace sextant::llm
