// Google Gemini, generateContent.
//
// Sources: ai.google.dev/api/generate-content, ai.google.dev/gemini-api/docs/function-calling and
// …/thought-signatures (parts come back to the model as they were, with their signatures).
#include <fmt/core.h>

#include "llm/wire_format.h"

namespace sextant::llm {
namespace {

const std::map<std::string_view, Finish> kFinish = {
    {"STOP", Finish::kStop},         {"MAX_TOKENS", Finish::kLength},
    {"SAFETY", Finish::kRefused},    {"RECITATION", Finish::kRefused},
    {"BLOCKLIST", Finish::kRefused}, {"LANGUAGE", Finish::kRefused},
    {"SPII", Finish::kRefused},      {"PROHIBITED_CONTENT", Finish::kRefused},
};

Json assistant_parts(const Message& message) {
  if (message.native.wire == "gemini") return own_json(message.native.json);
  Json parts = Json::array();
  if (!message.text.empty()) parts.push_back({{"text", message.text}});
  for (const ToolCall& call : message.tool_calls) {
    Json arguments = parse_or_discarded(call.arguments);
    if (!arguments.is_object()) arguments = Json::object();
    parts.push_back({{"functionCall", {{"name", call.name}, {"args", arguments}}}});
  }
  if (parts.empty()) parts.push_back({{"text", "(nothing)"}});
  return parts;
}

Json function_response(const Message& message) {
  const char* field = message.tool_failed ? "error" : "result";
  Json response = {{"name", message.tool_name}, {"response", {{field, message.text}}}};
  // Ids that this client made up ("call_1") mean nothing to the provider.
  if (!message.tool_call_id.starts_with("call_")) response["id"] = message.tool_call_id;
  return {{"functionResponse", response}};
}

void append(Json& list, const char* role, Json parts) {
  if (!list.empty() && list.back()["role"] == role) {
    for (Json& part : parts) list.back()["parts"].push_back(std::move(part));
  } else {
    list.push_back({{"role", role}, {"parts", std::move(parts)}});
  }
}

void add_contents(const Request& request, Json& body) {
  Json system = Json::array();
  Json list = Json::array();
  for (const Message& message : request.messages) {
    switch (message.role) {
      case Role::kSystem:
        system.push_back({{"text", message.text}});
        break;
      case Role::kUser:
        append(list, "user", Json::array({{{"text", message.text}}}));
        break;
      case Role::kAssistant:
        append(list, "model", assistant_parts(message));
        break;
      case Role::kTool:
        append(list, "user", Json::array({function_response(message)}));
        break;
    }
  }
  if (!system.empty()) body["systemInstruction"] = {{"parts", system}};
  body["contents"] = list;
}

void add_tools(const Request& request, Json& body) {
  if (request.tools.empty()) return;
  Json declarations = Json::array();
  for (const Tool& tool : request.tools) {
    declarations.push_back({{"name", tool.name},
                            {"description", tool.description},
                            {"parametersJsonSchema", own_json(tool.parameters)}});
  }
  body["tools"] = Json::array({{{"functionDeclarations", declarations}}});
  if (request.tool_use == ToolUse::kAuto) return;
  const char* mode = request.tool_use == ToolUse::kNone ? "NONE" : "ANY";
  body["toolConfig"] = {{"functionCallingConfig", {{"mode", mode}}}};
}

Json generation_config(const Request& request, const Quirks& quirks) {
  Json config = {{"maxOutputTokens", request.max_output_tokens}};
  if (request.temperature) config["temperature"] = *request.temperature;
  if (request.top_p) config["topP"] = *request.top_p;
  if (request.seed) config["seed"] = *request.seed;
  if (!request.stop.empty()) config["stopSequences"] = request.stop;
  if (!request.effort.empty()) config["thinkingConfig"] = {{"thinkingLevel", request.effort}};
  if (request.output && quirks.schema_mode != SchemaMode::kPrompt &&
      quirks.schema_mode != SchemaMode::kTool) {
    config["responseMimeType"] = "application/json";
    if (quirks.schema_mode == SchemaMode::kNative)
      config["responseJsonSchema"] = own_json(request.output->schema);
  }
  return config;
}

/// Thoughts are counted apart from the candidates.
Usage usage_of(const Json& json) {
  Usage usage;
  if (!json.is_object()) return usage;
  usage.reported = true;
  usage.input_tokens = count_at(json, "promptTokenCount") + count_at(json, "toolUsePromptTokenCount");
  usage.cached_input_tokens = count_at(json, "cachedContentTokenCount");
  usage.reasoning_tokens = count_at(json, "thoughtsTokenCount");
  usage.output_tokens = count_at(json, "candidatesTokenCount") + usage.reasoning_tokens;
  return usage;
}

void read_part(const Json& part, Response& response) {
  if (at(part, "text").is_string()) {
    (at(part, "thought") == Json(true) ? response.reasoning : response.text) += text_at(part, "text");
  }
  const Json& call = at(part, "functionCall");
  if (call.is_object()) {
    response.tool_calls.push_back(tool_call(text_at(call, "id"), text_at(call, "name"), at(call, "args")));
  }
}

}  // namespace

WireBody gemini_body(const Request& request, const Endpoint& endpoint, bool stream) {
  Json body = Json::object();
  add_contents(request, body);
  add_tools(request, body);
  body["generationConfig"] = generation_config(request, endpoint.quirks);
  return {std::move(body), fmt::format("/models/{}:{}", http::percent_encoded(endpoint.model),
                                       stream ? "streamGenerateContent?alt=sse" : "generateContent")};
}

Parsed parse_gemini(const Json& body) {
  Parsed parsed;
  Response& response = parsed.response;
  if (!at(body, "error").is_null()) {
    parsed.fault = read_inner_fault(dump(body));
    return parsed;
  }
  response.id = text_at(body, "responseId");
  response.model = text_at(body, "modelVersion");
  response.usage = usage_of(at(body, "usageMetadata"));
  const std::string blocked = text_at(at(body, "promptFeedback"), "blockReason");
  const Json& candidates = at(body, "candidates");
  if (!candidates.is_array() || candidates.empty()) {
    if (blocked.empty()) {
      parsed.fault = bad_reply("no candidates");
    } else {
      response.finish = Finish::kRefused;
      response.finish_text = blocked;
      response.refusal = "the prompt was blocked: " + blocked;
    }
    return parsed;
  }
  const Json& parts = at(at(candidates[0], "content"), "parts");
  if (parts.is_array()) {
    for (const Json& part : parts) read_part(part, response);
    if (!parts.empty()) response.native = {"gemini", dump(parts)};
  }
  complete_ids(response.tool_calls);
  response.finish_text = text_at(candidates[0], "finishReason");
  response.finish = response.finish_text.empty() ? Finish::kStop : finish_of(response.finish_text, kFinish);
  if (response.finish == Finish::kRefused) response.refusal = "filter: " + response.finish_text;
  if (response.finish_text == "MALFORMED_FUNCTION_CALL" || response.finish_text == "UNEXPECTED_TOOL_CALL") {
    parsed.fault = bad_reply("the model's tool call could not be read (" + response.finish_text + ")");
  }
  if (!response.tool_calls.empty() && response.finish == Finish::kStop) response.finish = Finish::kToolCalls;
  return parsed;
}

namespace {

/// Each event is a response of its own; parts are appended, the rest replaced by what comes later.
class GeminiStream : public EventReader {
 public:
  Parsed finish() override {
    Json body = last_;
    if (any_candidate_) {
      body["candidates"] = Json::array(
          {{{"content", {{"role", "model"}, {"parts", parts_}}}, {"finishReason", finish_reason_}}});
    }
    if (fault_) return {parse_gemini(body).response, fault_};
    const bool blocked = !text_at(at(body, "promptFeedback"), "blockReason").empty();
    Parsed parsed = parse_gemini(body);
    if (finish_reason_.empty() && !blocked) parsed.fault = cut_stream();
    return parsed;
  }

 private:
  void take(const std::string&, const Json& data, const OnText& on_text) override {
    if (!at(data, "error").is_null()) {
      fault_ = read_inner_fault(dump(data));
      return;
    }
    if (!data.is_object()) return;
    for (const auto& [key, value] : data.items()) {
      if (key != "candidates") last_[key] = value;
    }
    const Json& candidates = at(data, "candidates");
    if (!candidates.is_array() || candidates.empty()) return;
    any_candidate_ = true;
    if (const std::string reason = text_at(candidates[0], "finishReason"); !reason.empty())
      finish_reason_ = reason;
    const Json& parts = at(at(candidates[0], "content"), "parts");
    if (!parts.is_array()) return;
    for (const Json& part : parts) {
      parts_.push_back(part);
      if (on_text && at(part, "text").is_string() && at(part, "thought") != Json(true))
        on_text(text_at(part, "text"));
    }
  }

  Json last_ = Json::object();
  Json parts_ = Json::array();
  bool any_candidate_ = false;
  std::string finish_reason_;
};

}  // namespace

std::unique_ptr<StreamReader> gemini_stream() { return std::make_unique<GeminiStream>(); }

}  // namespace sextant::llm
