// From the general request to one provider's, and back: choice of the adapter, ways to get a schema kept, and
// what refusals have taught.
#include "llm/wire.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/check.h"
#include "base/text.h"
#include "llm/wire_format.h"

namespace sextant::llm {
namespace {

// ---- schemas

std::string schema_instructions(const OutputSchema& output) {
  return fmt::format(
      "Answer with exactly one JSON object and nothing else: no explanation, no code fence. It must match "
      "this JSON "
      "schema:\n{}",
      output.schema);
}

/// The request with its schema expressed in what `mode` leaves to work with.
Request lowered(Request request, SchemaMode mode) {
  if (!request.output) return request;
  if (mode == SchemaMode::kTool) {
    request.tools.push_back(
        {request.output->name, "Gives the answer. " + request.output->description, request.output->schema});
    request.tool_use = ToolUse::kRequired;
  } else if (mode != SchemaMode::kNative) {
    const std::string instructions = schema_instructions(*request.output);
    if (!request.messages.empty() && request.messages.front().role == Role::kSystem) {
      request.messages.front().text += "\n\n" + instructions;
    } else {
      request.messages.insert(request.messages.begin(), system_message(instructions));
    }
  }
  return request;
}

/// Where the answer came as a tool call, makes text of it.
void lift(const Request& request, SchemaMode mode, Response& response) {
  if (!request.output || mode != SchemaMode::kTool) return;
  const auto answer = std::ranges::find(response.tool_calls, request.output->name, &ToolCall::name);
  if (answer == response.tool_calls.end()) return;
  response.text = answer->arguments;
  response.tool_calls.clear();
  response.native = {};
  if (response.finish == Finish::kToolCalls) response.finish = Finish::kStop;
}

// ---- answers in the provider's own form

constexpr std::array<std::string_view, 5> kWireTags = {"chat", "responses", "anthropic", "gemini", "ollama"};

/// Names the model along with the format: reasoning is signed for one model, and another one refuses it.
std::string marked(std::string_view wire_tag, const std::string& endpoint_name) {
  return fmt::format("{} {}", wire_tag, endpoint_name);
}

void mark(const std::string& endpoint_name, Response& response) {
  if (!response.native.json.empty()) response.native.wire = marked(response.native.wire, endpoint_name);
}

/// Leaves each message the native form that this endpoint itself has given.
void keep_own(const Endpoint& endpoint, Request& request) {
  const std::string_view tag = kWireTags[static_cast<std::size_t>(endpoint.wire)];
  const std::string own = marked(tag, endpoint.name());
  for (Message& message : request.messages) {
    if (message.native.wire == own) {
      message.native.wire = tag;
    } else {
      message.native = {};
    }
  }
}

// ---- bodies with dotted paths

Json* find_path(Json& body, std::string_view path) {
  Json* node = &body;
  for (const std::string& key : base::split(path, '.')) {
    if (!node->is_object() || !node->contains(key)) return nullptr;
    node = &(*node)[key];
  }
  return node;
}

void erase_path(Json& body, const std::string& path) {
  const std::size_t dot = path.rfind('.');
  const std::string leaf = dot == std::string::npos ? path : path.substr(dot + 1);
  Json* parent = dot == std::string::npos ? &body : find_path(body, path.substr(0, dot));
  if (parent == nullptr || !parent->is_object()) return;
  parent->erase(leaf);
  if (parent != &body && parent->empty()) erase_path(body, path.substr(0, dot));
}

void apply(const Learned& learned, const Quirks& quirks, Json& body) {
  for (const std::string& path : quirks.omit) erase_path(body, path);
  for (const std::string& path : learned.dropped) erase_path(body, path);
  for (const auto& [from, to] : learned.renamed) {
    if (!body.contains(from)) continue;
    const Json value = body[from];
    body.erase(from);
    body[to] = value;
  }
}

// ---- learning

constexpr std::array<std::string_view, 2> kLimitNames = {"max_tokens", "max_completion_tokens"};
/// What may be left out without changing what is asked for.
constexpr std::array<std::string_view, 20> kDispensable = {"temperature",
                                                           "top_p",
                                                           "topP",
                                                           "seed",
                                                           "random_seed",
                                                           "stop",
                                                           "stop_sequences",
                                                           "stopSequences",
                                                           "reasoning_effort",
                                                           "reasoning",
                                                           "effort",
                                                           "include",
                                                           "store",
                                                           "stream_options",
                                                           "include_usage",
                                                           "provider",
                                                           "think",
                                                           "thinkingConfig",
                                                           "num_ctx",
                                                           "require_parameters"};
constexpr std::array<std::string_view, 8> kSchemaNames = {
    "response_format",    "output_config",    "format", "json_schema",
    "responseJsonSchema", "responseMimeType", "text",   "schema"};

bool is_word_at(std::string_view text, std::size_t begin, std::size_t length) {
  const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  const bool left = begin == 0 || !word(text[begin - 1]);
  const bool right = begin + length >= text.size() || !word(text[begin + length]);
  return left && right;
}

bool mentions(std::string_view text, std::string_view name) {
  for (std::size_t found = text.find(name); found != std::string_view::npos;
       found = text.find(name, found + 1)) {
    if (is_word_at(text, found, name.size())) return true;
  }
  return false;
}

/// The message says that something is not known or not accepted, rather than that a value is wrong.
bool says_unsupported(const Fault& fault) {
  const std::string text = base::lower_case(fault.message + " " + fault.code);
  return std::ranges::any_of(
      std::array{"unsupported", "not supported", "unknown", "unrecognized", "unrecognised", "extra inputs",
                 "not permitted", "not allowed", "unexpected", "invalid field", "does not support",
                 "may not be used", "cannot be used", "deprecated"},
      [&](const char* words) { return text.find(words) != std::string::npos; });
}

struct Sent {
  std::string path{};
  std::string leaf{};
};

/// Every parameter of the refused body, nested ones before their container.
std::vector<Sent> sent_parameters(const Json& body) {
  std::vector<Sent> list;
  for (const auto& [key, value] : body.items()) {
    if (value.is_object()) {
      for (const auto& [inner, unused] : value.items()) list.push_back({key + "." + inner, inner});
    }
    list.push_back({key, key});
  }
  return list;
}

/// Which sent parameter the fault is about: as it says in a field, else as its message names it.
std::optional<Sent> refused_parameter(const Fault& fault, const Json& body) {
  const std::vector<Sent> sent = sent_parameters(body);
  if (!fault.parameter.empty()) {
    for (const Sent& parameter : sent) {
      if (fault.parameter == parameter.path || fault.parameter == parameter.leaf) return parameter;
    }
    const std::string first = fault.parameter.substr(0, fault.parameter.find_first_of(".["));
    for (const Sent& parameter : sent) {
      if (first == parameter.path) return parameter;
    }
    return std::nullopt;
  }
  if (!says_unsupported(fault)) return std::nullopt;
  std::optional<Sent> best;
  for (const Sent& parameter : sent) {
    const bool named = mentions(fault.message, parameter.leaf);
    if (named && (!best || parameter.leaf.size() > best->leaf.size())) best = parameter;
  }
  return best;
}

bool learn_limit(const Fault& fault, const std::string& refused, Learned& learned) {
  const std::string other(kLimitNames[refused == kLimitNames[0] ? 1 : 0]);
  if (!mentions(fault.message, other) && !says_unsupported(fault)) return false;
  for (const auto& [from, to] : learned.renamed) {
    if (from == other || to == refused) return false;  // neither name is accepted
  }
  learned.renamed[refused] = other;
  return true;
}

bool learn_schema(const Endpoint& endpoint, Learned& learned) {
  if (schema_mode(endpoint, learned) == SchemaMode::kPrompt) return false;
  ++learned.schema_steps;
  return true;
}

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// The endpoint as its adapter must see it.
Endpoint effective(Endpoint endpoint, const Learned& learned) {
  endpoint.quirks.schema_mode = schema_mode(endpoint, learned);
  return endpoint;
}

WireBody body_of(const Request& request, const Endpoint& endpoint, bool stream) {
  switch (endpoint.wire) {
    case Wire::kChat:
      return chat_body(request, endpoint, stream);
    case Wire::kResponses:
      return responses_body(request, endpoint, stream);
    case Wire::kAnthropic:
      return anthropic_body(request, endpoint, stream);
    case Wire::kGemini:
      return gemini_body(request, endpoint, stream);
    case Wire::kOllama:
      break;
  }
  return ollama_body(request, endpoint, stream);
}

Parsed parse(const Json& body, const Endpoint& endpoint) {
  switch (endpoint.wire) {
    case Wire::kChat:
      return parse_chat(body, endpoint);
    case Wire::kResponses:
      return parse_responses(body);
    case Wire::kAnthropic:
      return parse_anthropic(body);
    case Wire::kGemini:
      return parse_gemini(body);
    case Wire::kOllama:
      break;
  }
  return parse_ollama(body);
}

std::unique_ptr<StreamReader> reader_of(const Endpoint& endpoint) {
  switch (endpoint.wire) {
    case Wire::kChat:
      return chat_stream(endpoint);
    case Wire::kResponses:
      return responses_stream();
    case Wire::kAnthropic:
      return anthropic_stream();
    case Wire::kGemini:
      return gemini_stream();
    case Wire::kOllama:
      break;
  }
  return ollama_stream();
}

/// Lifts the answer of a stream out of its tool call, and marks it.
class LiftingReader : public StreamReader {
 public:
  LiftingReader(std::unique_ptr<StreamReader> inner, Request request, SchemaMode mode,
                std::string endpoint_name)
      : inner_(std::move(inner)),
        request_(std::move(request)),
        mode_(mode),
        endpoint_name_(std::move(endpoint_name)) {}
  void feed(std::string_view portion, const OnText& on_text) override { inner_->feed(portion, on_text); }
  Parsed finish() override {
    Parsed parsed = inner_->finish();
    lift(request_, mode_, parsed.response);
    mark(endpoint_name_, parsed.response);
    return parsed;
  }

 private:
  std::unique_ptr<StreamReader> inner_;
  Request request_;
  SchemaMode mode_;
  std::string endpoint_name_;
};

}  // namespace

SchemaMode schema_mode(const Endpoint& endpoint, const Learned& learned) {
  int mode = static_cast<int>(endpoint.quirks.schema_mode);
  for (int step = 0; step < learned.schema_steps; ++step) {
    ++mode;
    const bool cannot_force = endpoint.wire == Wire::kOllama && mode == static_cast<int>(SchemaMode::kTool);
    const bool no_such_mode =
        endpoint.wire == Wire::kAnthropic && mode == static_cast<int>(SchemaMode::kJsonObject);
    if (cannot_force || no_such_mode) ++mode;
  }
  return static_cast<SchemaMode>(std::min(mode, static_cast<int>(SchemaMode::kPrompt)));
}

http::Request to_wire(const Request& request, const Endpoint& endpoint, const Learned& learned, bool stream) {
  const Endpoint adapted = effective(endpoint, learned);
  Request adapted_request = lowered(request, adapted.quirks.schema_mode);
  keep_own(endpoint, adapted_request);
  WireBody wire = body_of(adapted_request, adapted, stream);
  apply(learned, endpoint.quirks, wire.body);
  http::Request sent{.method = "POST",
                     .url = endpoint.base_url + wire.path,
                     .headers = endpoint.headers,
                     .secret_headers = endpoint.secret_headers,
                     .body = dump(wire.body)};
  sent.headers.push_back({"Content-Type", "application/json"});
  return sent;
}

Parsed from_wire(std::string_view body, const Request& request, const Endpoint& endpoint,
                 const Learned& learned) {
  const Json json = parse_or_discarded(body);
  if (!json.is_object()) return {{}, bad_reply("the body is no JSON object")};
  Parsed parsed = parse(json, endpoint);
  lift(request, schema_mode(endpoint, learned), parsed.response);
  mark(endpoint.name(), parsed.response);
  return parsed;
}

std::unique_ptr<StreamReader> stream_reader(const Request& request, const Endpoint& endpoint,
                                            const Learned& learned) {
  return std::make_unique<LiftingReader>(reader_of(endpoint), request, schema_mode(endpoint, learned),
                                         endpoint.name());
}

bool learn(const Fault& fault, std::string_view sent, const Endpoint& endpoint, Learned& learned) {
  if (fault.kind != FaultKind::kBadRequest) return false;
  const Json body = parse_or_discarded(sent);
  if (!body.is_object()) return false;
  const auto refused = refused_parameter(fault, body);
  if (!refused) return false;
  if (is_one_of(kLimitNames, refused->path)) return learn_limit(fault, refused->path, learned);
  if (is_one_of(kDispensable, refused->leaf)) return learned.dropped.insert(refused->path).second;
  const bool forced_answer =
      refused->leaf == "tool_choice" && schema_mode(endpoint, learned) == SchemaMode::kTool;
  if (forced_answer || is_one_of(kSchemaNames, refused->leaf)) return learn_schema(endpoint, learned);
  if (refused->leaf == "tool_choice") return learned.dropped.insert(refused->path).second;
  return false;
}

}  // namespace sextant::llm
