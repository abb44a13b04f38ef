// OpenAI Chat Completions, and everybody who speaks it.
//
// Sources: platform.openai.com/docs/api-reference/chat; for dialects docs.mistral.ai, api-docs.deepseek.com,
// docs.x.ai, console.groq.com/docs, openrouter.ai/docs, docs.together.ai, docs.fireworks.ai, docs.vllm.ai,
// and learn.microsoft.com/azure/ai-services/openai/reference.
#include <fmt/core.h>

#include "base/text.h"
#include "llm/wire_format.h"

namespace sextant::llm {
namespace {

const std::map<std::string_view, Finish> kFinish = {
    {"stop", Finish::kStop},
    {"eos", Finish::kStop},
    {"length", Finish::kLength},
    {"model_length", Finish::kLength},
    {"max_tokens", Finish::kLength},
    {"tool_calls", Finish::kToolCalls},
    {"function_call", Finish::kToolCalls},
    {"content_filter", Finish::kRefused},
};

/// Mistral accepts only ids of nine letters and digits: the digits of a hash (FNV-1a, 64 bits) of another's
/// id.
std::string short_id(const std::string& id) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return fmt::format("{:016x}", hash).substr(0, 9);
}

std::string sent_id(const std::string& id, const Quirks& quirks) {
  const bool fits = id.size() == 9 &&
                    id.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") ==
                        std::string::npos;
  return quirks.short_tool_ids && !fits ? short_id(id) : id;
}

Json assistant(const Message& message, const Quirks& quirks) {
  Json json = {{"role", "assistant"}, {"content", message.text}};
  if (message.native.wire == "chat") {
    const Json native = parse_or_discarded(message.native.json);
    for (const std::string& field : quirks.returned_fields) {
      if (!at(native, field).is_null()) json[field] = at(native, field);
    }
  }
  if (message.tool_calls.empty()) return json;
  Json& calls = json["tool_calls"] = Json::array();
  for (const ToolCall& call : message.tool_calls) {
    calls.push_back({{"id", sent_id(call.id, quirks)},
                     {"type", "function"},
                     {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return json;
}

Json messages(const Request& request, const Quirks& quirks) {
  Json list = Json::array();
  for (const Message& message : request.messages) {
    switch (message.role) {
      case Role::kSystem:
        list.push_back({{"role", "system"}, {"content", message.text}});
        break;
      case Role::kUser:
        list.push_back({{"role", "user"}, {"content", message.text}});
        break;
      case Role::kAssistant:
        list.push_back(assistant(message, quirks));
        break;
      case Role::kTool:
        list.push_back({{"role", "tool"},
                        {"tool_call_id", sent_id(message.tool_call_id, quirks)},
                        {"content", message.tool_failed ? "error: " + message.text : message.text}});
        break;
    }
  }
  return list;
}

/// Strict mode demands that every object lists all its properties as required and admits no others.
bool is_strict(const Json& schema) {
  if (schema.is_array()) {
    for (const Json& item : schema) {
      if (!is_strict(item)) return false;
    }
    return true;
  }
  if (!schema.is_object()) return true;
  const Json& properties = at(schema, "properties");
  if (text_at(schema, "type") == "object" || properties.is_object()) {
    if (at(schema, "additionalProperties") != Json(false)) return false;
    const Json& required = at(schema, "required");
    if (properties.is_object() && properties.size() != (required.is_array() ? required.size() : 0))
      return false;
  }
  for (const auto& [key, value] : schema.items()) {
    if (key != "enum" && key != "const" && !is_strict(value)) return false;
  }
  return true;
}

void add_output(const Request& request, const Quirks& quirks, Json& body) {
  if (!request.output) return;
  if (quirks.schema_mode == SchemaMode::kJsonObject) body["response_format"] = {{"type", "json_object"}};
  if (quirks.schema_mode != SchemaMode::kNative) return;
  const Json schema = own_json(request.output->schema);
  Json format = {{"name", request.output->name}, {"schema", schema}, {"strict", is_strict(schema)}};
  if (!request.output->description.empty()) format["description"] = request.output->description;
  body["response_format"] = {{"type", "json_schema"}, {"json_schema", format}};
}

void add_tools(const Request& request, const Quirks& quirks, Json& body) {
  if (request.tools.empty()) return;
  Json& tools = body["tools"] = Json::array();
  for (const Tool& tool : request.tools) {
    tools.push_back({{"type", "function"},
                     {"function",
                      {{"name", tool.name},
                       {"description", tool.description},
                       {"parameters", own_json(tool.parameters)}}}});
  }
  if (request.tool_use == ToolUse::kNone) body["tool_choice"] = "none";
  if (request.tool_use == ToolUse::kRequired) body["tool_choice"] = quirks.required_name;
}

std::string chat_path(const Endpoint& endpoint) {
  if (!endpoint.quirks.deployment_path) return "/chat/completions";
  return fmt::format("/openai/deployments/{}/chat/completions?api-version={}",
                     http::percent_encoded(endpoint.model),
                     http::percent_encoded(endpoint.quirks.api_version));
}

Usage usage_of(const Json& body, const Quirks& quirks) {
  const Json& grouped = at(at(body, "x_groq"), "usage");
  const Json& json = at(body, "usage").is_object() ? at(body, "usage") : grouped;
  Usage usage;
  if (!json.is_object()) return usage;
  usage.reported = true;
  usage.input_tokens = count_at(json, "prompt_tokens");
  usage.output_tokens = count_at(json, "completion_tokens");
  usage.cached_input_tokens = std::max(count_at(at(json, "prompt_tokens_details"), "cached_tokens"),
                                       count_at(json, "prompt_cache_hit_tokens"));
  usage.cache_write_tokens = count_at(at(json, "prompt_tokens_details"), "cache_write_tokens");
  usage.reasoning_tokens = count_at(at(json, "completion_tokens_details"), "reasoning_tokens");
  if (quirks.reasoning_apart) usage.output_tokens += usage.reasoning_tokens;
  if (at(json, "cost").is_number() && at(json, "cost").get<double>() >= 0)
    usage.cost_usd = at(json, "cost").get<double>();
  return usage;
}

/// Mistral's reasoning models put their thoughts into parts of the content.
std::string thoughts_of(const Json& message) {
  for (const char* field : {"reasoning_content", "reasoning"}) {
    if (at(message, field).is_string()) return text_at(message, field);
  }
  std::string text;
  const Json& content = at(message, "content");
  if (!content.is_array()) return text;
  for (const Json& part : content) {
    if (text_at(part, "type") == "thinking") text += text_of_content(at(part, "thinking"));
  }
  return text;
}

void read_calls(const Json& message, Response& response) {
  add_function_calls(message, response.tool_calls);
  const Json& old = at(message, "function_call");  // before tools there was one function
  if (response.tool_calls.empty() && old.is_object()) {
    response.tool_calls.push_back(tool_call("", text_at(old, "name"), at(old, "arguments")));
  }
  complete_ids(response.tool_calls);
}

}  // namespace

WireBody chat_body(const Request& request, const Endpoint& endpoint, bool stream) {
  const Quirks& quirks = endpoint.quirks;
  Json body = {{"model", endpoint.model}, {"messages", messages(request, quirks)}};
  body[quirks.max_tokens_name] = request.max_output_tokens;
  if (request.temperature) body["temperature"] = *request.temperature;
  if (request.top_p) body["top_p"] = *request.top_p;
  if (request.seed) body[quirks.seed_name] = *request.seed;
  if (!request.effort.empty()) body["reasoning_effort"] = request.effort;
  if (!request.stop.empty()) body["stop"] = request.stop;
  add_output(request, quirks, body);
  add_tools(request, quirks, body);
  if (quirks.require_parameters) body["provider"] = {{"require_parameters", true}};
  if (stream) {
    body["stream"] = true;
    if (quirks.stream_usage) body["stream_options"] = {{"include_usage", true}};
  }
  return {std::move(body), chat_path(endpoint)};
}

Parsed parse_chat(const Json& body, const Endpoint& endpoint) {
  Parsed parsed;
  Response& response = parsed.response;
  response.id = text_at(body, "id");
  response.model = text_at(body, "model");
  response.usage = usage_of(body, endpoint.quirks);
  const Json& choices = at(body, "choices");
  const Json& choice = choices.is_array() && !choices.empty() ? choices[0] : Json();
  const Json& error = at(choice, "error").is_object() ? at(choice, "error") : at(body, "error");
  if (!error.is_null()) {
    parsed.fault = read_inner_fault(dump({{"error", error}}));
    return parsed;
  }
  const Json& message = at(choice, "message");
  if (!message.is_object()) {
    parsed.fault = bad_reply("no choices[0].message");
    return parsed;
  }
  response.text = text_of_content(at(message, "content"));
  response.reasoning = thoughts_of(message);
  response.refusal = text_at(message, "refusal");
  read_calls(message, response);
  response.finish_text = text_at(choice, "finish_reason");
  response.finish = response.finish_text.empty() ? Finish::kStop : finish_of(response.finish_text, kFinish);
  if (response.finish_text == "error" || response.finish_text == "insufficient_system_resource") {
    parsed.fault = bad_reply("the provider broke off (" + response.finish_text + ")");
  }
  if (response.finish == Finish::kRefused && response.refusal.empty()) response.refusal = "content filter";
  if (!response.refusal.empty() && response.text.empty()) response.finish = Finish::kRefused;
  if (!response.tool_calls.empty() && response.finish == Finish::kStop) response.finish = Finish::kToolCalls;
  response.native = {"chat", dump(message)};
  return parsed;
}

namespace {

/// Puts the chunks together into the document that parse_chat reads.
class ChatStream : public EventReader {
 public:
  explicit ChatStream(const Endpoint& endpoint) : endpoint_(endpoint) {}

  Parsed finish() override {
    Json choice = {{"message", message()}, {"finish_reason", finish_reason_}};
    Parsed parsed = parse_chat(
        {{"id", id_}, {"model", model_}, {"usage", usage_}, {"choices", Json::array({choice})}}, endpoint_);
    if (fault_) parsed.fault = fault_;
    if (!parsed.fault && finish_reason_.empty() && !done_marker_) parsed.fault = cut_stream();
    return parsed;
  }

 private:
  struct Slot {
    Json index{};
    std::string id{};
    std::string name{};
    std::string text{};
    Json object{};
  };

  void take(const std::string&, const Json& data, const OnText& on_text) override {
    if (!at(data, "error").is_null()) {
      fault_ = read_inner_fault(dump(data));
      return;
    }
    if (id_.empty()) id_ = text_at(data, "id");
    if (model_.empty()) model_ = text_at(data, "model");
    if (at(data, "usage").is_object()) usage_ = at(data, "usage");
    if (at(at(data, "x_groq"), "usage").is_object()) usage_ = at(at(data, "x_groq"), "usage");
    const Json& choices = at(data, "choices");
    if (!choices.is_array() || choices.empty()) return;  // usage, or Azure's verdict on the prompt
    if (at(choices[0], "error").is_object()) {
      fault_ = read_inner_fault(dump(choices[0]));
      return;
    }
    if (const std::string reason = text_at(choices[0], "finish_reason"); !reason.empty())
      finish_reason_ = reason;
    const Json& delta =
        at(choices[0], "delta").is_object() ? at(choices[0], "delta") : at(choices[0], "message");
    const std::string text = text_of_content(at(delta, "content"));
    text_ += text;
    if (!text.empty() && on_text) on_text(text);
    reasoning_ += thoughts_of(delta);
    refusal_ += text_at(delta, "refusal");
    const Json& calls = at(delta, "tool_calls");
    if (!calls.is_array()) return;
    for (std::size_t position = 0; position < calls.size(); ++position) {
      add(slot(calls[position], position, calls.size()), calls[position]);
    }
  }

  /// Which call a portion belongs to: its index; where that is missing, or names a call with another id, its
  /// id; else its place among the portions of this chunk, or the call that came last.
  Slot& slot(const Json& call, std::size_t position, std::size_t count) {
    const Json& index = at(call, "index");
    const std::string id = text_at(call, "id");
    for (Slot& known : slots_) {
      const bool same_id = id.empty() || known.id.empty() || known.id == id;
      if (!index.is_null() ? known.index == index && same_id : !id.empty() && known.id == id) return known;
    }
    if (index.is_null() && id.empty() && !begins_anew(call)) {
      if (count > 1 && position < slots_.size()) return slots_[position];
      if (count == 1 && !slots_.empty()) return slots_.back();
    }
    return slots_.emplace_back(Slot{.index = index, .id = id});
  }

  /// A portion with a name, after a call that already has one and whose arguments are whole, begins another.
  bool begins_anew(const Json& call) const {
    if (text_at(at(call, "function"), "name").empty() || slots_.empty()) return false;
    const Slot& last = slots_.back();
    return !last.name.empty() && (last.object.is_object() || parse_or_discarded(last.text).is_object());
  }

  static void add(Slot& slot, const Json& call) {
    if (slot.id.empty()) slot.id = text_at(call, "id");
    const Json& function = at(call, "function");
    if (slot.name.empty()) slot.name = text_at(function, "name");
    const Json& arguments = at(function, "arguments");
    if (arguments.is_string()) {
      slot.text += arguments.get<std::string>();
    } else if (!arguments.is_null()) {
      slot.object = arguments;
    }
  }

  Json message() const {
    Json message = {{"role", "assistant"}, {"content", text_}};
    if (!reasoning_.empty()) message["reasoning_content"] = reasoning_;
    if (!refusal_.empty()) message["refusal"] = refusal_;
    if (slots_.empty()) return message;
    Json& calls = message["tool_calls"] = Json::array();
    for (const Slot& slot : slots_) {
      const Json arguments = slot.object.is_null() ? Json(slot.text) : slot.object;
      calls.push_back({{"id", slot.id}, {"function", {{"name", slot.name}, {"arguments", arguments}}}});
    }
    return message;
  }

  Endpoint endpoint_;
  std::string id_, model_, text_, reasoning_, refusal_, finish_reason_;
  Json usage_;
  std::vector<Slot> slots_;
};

}  // namespace

std::unique_ptr<StreamReader> chat_stream(const Endpoint& endpoint) {
  return std::make_unique<ChatStream>(endpoint);
}

}  // namespace sextant::llm
