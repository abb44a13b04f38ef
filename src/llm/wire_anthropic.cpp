// Anthropic Messages, API versions 2023-06-01 and 2026-10-21.
//
// Sources: docs.claude.com/en/api/messages, …/streaming, …/errors,
// platform.claude.com/docs/api/migration-2026-10-21 (the later version refuses temperature, top_p and top_k
// on every model). Newer models refuse forced tool calls, so a schema is asked for by output_config.format;
// older ones do not know that and learn() falls back to a tool.
#include <fmt/core.h>

#include "llm/wire_format.h"

namespace sextant::llm {
namespace {

const std::map<std::string_view, Finish> kFinish = {
    {"end_turn", Finish::kStop},      {"stop_sequence", Finish::kStop},
    {"tool_use", Finish::kToolCalls}, {"max_tokens", Finish::kLength},
    {"refusal", Finish::kRefused},    {"model_context_window_exceeded", Finish::kLength},
};

constexpr std::string_view kLastVersionWithSampling = "2023-06-01";

Json assistant_content(const Message& message) {
  if (message.native.wire == "anthropic") return own_json(message.native.json);
  Json content = Json::array();
  if (!message.text.empty()) content.push_back({{"type", "text"}, {"text", message.text}});
  for (const ToolCall& call : message.tool_calls) {
    Json input = parse_or_discarded(call.arguments);
    if (!input.is_object()) input = Json::object();  // a call with a fault, of another provider
    content.push_back({{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", input}});
  }
  if (content.empty()) content.push_back({{"type", "text"}, {"text", "(nothing)"}});  // empty is refused
  return content;
}

Json tool_result(const Message& message) {
  Json result = {{"type", "tool_result"}, {"tool_use_id", message.tool_call_id}, {"content", message.text}};
  if (message.tool_failed) result["is_error"] = true;
  return result;
}

/// Messages of one role in a row become one: results of several tool calls must stand together.
void append(Json& list, const char* role, Json content) {
  if (!list.empty() && list.back()["role"] == role) {
    for (Json& part : content) list.back()["content"].push_back(std::move(part));
  } else {
    list.push_back({{"role", role}, {"content", std::move(content)}});
  }
}

void add_messages(const Request& request, Json& body) {
  std::string system;
  Json list = Json::array();
  for (const Message& message : request.messages) {
    switch (message.role) {
      case Role::kSystem:
        system += (system.empty() ? "" : "\n\n") + message.text;
        break;
      case Role::kUser:
        append(list, "user", Json::array({{{"type", "text"}, {"text", message.text}}}));
        break;
      case Role::kAssistant:
        append(list, "assistant", assistant_content(message));
        break;
      case Role::kTool:
        append(list, "user", Json::array({tool_result(message)}));
        break;
    }
  }
  if (!system.empty()) body["system"] = system;
  body["messages"] = list;
}

void add_tools(const Request& request, Json& body) {
  if (request.tools.empty()) return;
  Json& tools = body["tools"] = Json::array();
  for (const Tool& tool : request.tools) {
    tools.push_back({{"name", tool.name},
                     {"description", tool.description},
                     {"input_schema", own_json(tool.parameters)}});
  }
  if (request.tool_use == ToolUse::kNone) body["tool_choice"] = {{"type", "none"}};
  if (request.tool_use == ToolUse::kRequired) body["tool_choice"] = {{"type", "any"}};
}

Usage usage_of(const Json& json) {
  Usage usage;
  if (!json.is_object()) return usage;
  usage.reported = true;
  usage.cached_input_tokens = count_at(json, "cache_read_input_tokens");
  usage.cache_write_tokens = count_at(json, "cache_creation_input_tokens");
  usage.input_tokens = count_at(json, "input_tokens") + usage.cached_input_tokens + usage.cache_write_tokens;
  usage.output_tokens = count_at(json, "output_tokens");
  usage.reasoning_tokens = count_at(at(json, "output_tokens_details"), "thinking_tokens");
  return usage;
}

/// What the model wrote as it can be given back: an input that is no object would be refused.
Json returnable(Json content) {
  for (Json& block : content) {
    if (text_at(block, "type") == "tool_use" && !at(block, "input").is_object())
      block["input"] = Json::object();
  }
  return content;
}

}  // namespace

WireBody anthropic_body(const Request& request, const Endpoint& endpoint, bool stream) {
  Json body = {{"model", endpoint.model}, {"max_tokens", request.max_output_tokens}};
  add_messages(request, body);
  if (endpoint.quirks.api_version <= kLastVersionWithSampling) {
    if (request.temperature) body["temperature"] = *request.temperature;
    if (request.top_p) body["top_p"] = *request.top_p;
  }
  if (!request.stop.empty()) body["stop_sequences"] = request.stop;
  if (!request.effort.empty()) body["output_config"]["effort"] = request.effort;
  if (request.output && endpoint.quirks.schema_mode == SchemaMode::kNative) {
    body["output_config"]["format"] = {{"type", "json_schema"}, {"schema", own_json(request.output->schema)}};
  }
  add_tools(request, body);
  if (stream) body["stream"] = true;
  return {std::move(body), "/v1/messages"};
}

Parsed parse_anthropic(const Json& body) {
  Parsed parsed;
  Response& response = parsed.response;
  if (text_at(body, "type") == "error") {
    parsed.fault = read_inner_fault(dump(body));
    return parsed;
  }
  response.id = text_at(body, "id");
  response.model = text_at(body, "model");
  response.usage = usage_of(at(body, "usage"));
  const Json& content = at(body, "content");
  if (!content.is_array()) {
    parsed.fault = bad_reply("no content");
    return parsed;
  }
  for (const Json& block : content) {
    const std::string type = text_at(block, "type");
    if (type == "text") response.text += text_at(block, "text");
    if (type == "thinking") response.reasoning += text_at(block, "thinking");
    if (type == "tool_use") {
      response.tool_calls.push_back(
          tool_call(text_at(block, "id"), text_at(block, "name"), at(block, "input")));
    }
  }
  complete_ids(response.tool_calls);
  response.finish_text = text_at(body, "stop_reason");
  response.finish = finish_of(response.finish_text, kFinish);
  if (response.finish == Finish::kRefused) {
    response.refusal = response.text.empty() ? "the model declined" : response.text;
  }
  if (!response.tool_calls.empty() && response.finish == Finish::kStop) response.finish = Finish::kToolCalls;
  if (!content.empty()) response.native = {"anthropic", dump(returnable(content))};
  return parsed;
}

namespace {

/// Rebuilds the whole message from its events.
class AnthropicStream : public EventReader {
 public:
  Parsed finish() override {
    Json body = message_;
    body["content"] = Json::array();
    for (const auto& [index, block] : blocks_) body["content"].push_back(finished(index, block));
    Parsed parsed = parse_anthropic(body);
    if (fault_) parsed.fault = fault_;
    if (!parsed.fault && !stopped_) parsed.fault = cut_stream();
    return parsed;
  }

 private:
  void take(const std::string& event, const Json& data, const OnText& on_text) override {
    const std::string type = text_at(data, "type").empty() ? event : text_at(data, "type");
    const std::int64_t index = count_at(data, "index");
    if (type == "error") {
      fault_ = read_inner_fault(dump(data));
    } else if (type == "message_start" && at(data, "message").is_object()) {
      message_ = at(data, "message");
    } else if (type == "content_block_start") {
      blocks_[index] = at(data, "content_block");
    } else if (type == "content_block_delta") {
      take_delta(index, at(data, "delta"), on_text);
    } else if (type == "message_delta") {
      if (at(at(data, "delta"), "stop_reason").is_string())
        message_["stop_reason"] = at(data, "delta")["stop_reason"];
      const Json& usage = at(data, "usage");
      if (usage.is_object()) {
        if (!at(message_, "usage").is_object()) message_["usage"] = Json::object();
        for (const auto& [key, value] : usage.items()) message_["usage"][key] = value;
      }
    } else if (type == "message_stop") {
      stopped_ = true;
    }
  }

  void take_delta(std::int64_t index, const Json& delta, const OnText& on_text) {
    Json& block = blocks_[index];
    if (block.is_null()) block = {{"type", "text"}};
    if (!block.is_object()) return;
    for (const char* field : {"text", "thinking", "signature"}) {
      if (at(delta, field).is_string()) block[field] = text_at(block, field) + text_at(delta, field);
    }
    if (at(delta, "partial_json").is_string()) inputs_[index] += text_at(delta, "partial_json");
    if (const std::string text = text_at(delta, "text"); !text.empty() && on_text) on_text(text);
  }

  Json finished(std::int64_t index, Json block) const {
    const auto input = inputs_.find(index);
    if (input == inputs_.end() || text_at(block, "type") != "tool_use") return block;
    const Json parsed = parse_or_discarded(input->second);
    block["input"] = parsed.is_discarded() ? Json(input->second) : parsed;
    return block;
  }

  Json message_ = Json::object();
  std::map<std::int64_t, Json> blocks_;
  std::map<std::int64_t, std::string> inputs_;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<StreamReader> anthropic_stream() { return std::make_unique<AnthropicStream>(); }

}  // namespace sextant::llm
