#include "llm/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "llm/route.h"
#include "llm/structured.h"

namespace sextant::llm {
namespace {

/// Reasoning models think even about small questions; the client raises this where it does not suffice.
constexpr std::int64_t kProbeTokens = 512;

constexpr const char* kSumSchema =
    R"({"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"],"additionalProperties":false})";
constexpr const char* kPairSchema =
    R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false})";

std::string wire_name(Wire wire) {
  switch (wire) {
    case Wire::kChat:
      return "OpenAI Chat Completions";
    case Wire::kResponses:
      return "OpenAI Responses";
    case Wire::kAnthropic:
      return "Anthropic Messages";
    case Wire::kGemini:
      return "Gemini generateContent";
    case Wire::kOllama:
      break;
  }
  return "Ollama chat";
}

std::string mode_name(SchemaMode mode) {
  switch (mode) {
    case SchemaMode::kNative:
      return "json_schema";
    case SchemaMode::kTool:
      return "tool";
    case SchemaMode::kJsonObject:
      return "json_object";
    case SchemaMode::kPrompt:
      break;
  }
  return "prompt";
}

std::string without_password(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t at = url.find('@');
  if (scheme == std::string::npos || at == std::string::npos) return url;
  return url.substr(0, scheme + 3) + url.substr(at + 1);
}

struct Outcome {
  std::optional<Fault> fault{};
  bool as_expected = false;
  std::string remark{};
  Amount charged{};
};

Request question(const char* text) {
  return {.messages = {user_message(text)}, .max_output_tokens = kProbeTokens};
}

Outcome ask_plainly(Client& client) {
  const Reply reply = client.complete(question("Answer with the single word: ready"), {.purpose = "check"});
  return {reply.fault, true, reply.response.model, reply.charged};
}

Outcome ask_in_stream(Client& client) {
  int portions = 0;
  const Call call{.purpose = "check", .on_text = [&](std::string_view) { ++portions; }};
  const Reply reply = client.complete(question("Count from 1 to 10, separated by spaces."), call);
  return {reply.fault, portions > 0, fmt::format("{} portions", portions), reply.charged};
}

Outcome ask_for_json(Client& client) {
  const StructuredReply reply = ask_structured(
      client, question("What is 17 + 25? Give it as \"sum\"."),
      {.output = {.name = "sum", .schema = kSumSchema, .description = "The sum."}, .most_reasks = 1}, {},
      {.purpose = "check"});
  return {reply.fault, true, reply.replies.size() > 1 ? "at the second time of asking" : "", reply.charged};
}

Outcome ask_for_tool(Client& client) {
  bool called = false;
  const ToolHandler add{
      .tool = {.name = "add", .description = "Adds two integers.", .parameters = kPairSchema},
      .run = [&](const std::string&) {
        called = true;
        return ToolResult{"6912"};
      }};
  Request request = question("Add 1234 and 5678 with the tool add, then say the result.");
  const ToolLoopReply reply = run_tools(client, std::move(request), {add}, {.purpose = "check"}, 3);
  return {reply.reply.fault, called, called ? "" : "the model answered without calling the tool",
          reply.charged};
}

/// Nothing else can work after this.
bool is_final(const std::optional<Fault>& fault) {
  return fault && (is_unavailable(fault->kind) || fault->kind == FaultKind::kBudget ||
                   fault->kind == FaultKind::kCancelled);
}

/// Whether some answer came, if only an error. A call that the budget stopped says nothing.
void note_reached(const std::optional<Fault>& fault, std::optional<bool>& reachable) {
  if (fault && (fault->kind == FaultKind::kBudget || fault->kind == FaultKind::kCancelled)) return;
  const bool silent =
      fault && (fault->kind == FaultKind::kUnreachable || fault->kind == FaultKind::kTimeout ||
                fault->kind == FaultKind::kBroken || fault->kind == FaultKind::kDeadline ||
                fault->kind == FaultKind::kCircuitOpen);
  reachable = reachable.value_or(false) || !silent;
}

void run_probes(Client& client, const World& world, ModelCheck& check) {
  const std::vector<std::pair<const char*, std::function<Outcome(Client&)>>> probes = {
      {"answer", ask_plainly}, {"stream", ask_in_stream}, {"json", ask_for_json}, {"tools", ask_for_tool}};
  for (const auto& [name, ask] : probes) {
    const double begin_s = world.now_s();
    const Outcome outcome = ask(client);
    note_reached(outcome.fault, check.reachable);
    check.charged.tokens += outcome.charged.tokens;
    check.charged.usd += outcome.charged.usd;
    check.probes.push_back({.name = name,
                            .passed = !outcome.fault && outcome.as_expected,
                            .message = outcome.fault ? outcome.fault->message : outcome.remark,
                            .latency_s = world.now_s() - begin_s});
    if (is_final(outcome.fault)) return;
  }
}

}  // namespace

bool ModelCheck::usable() const {
  const bool all = std::ranges::all_of(probes, &Probe::passed);
  return !key_missing && all;
}

std::optional<double> run_usd(const RunSize& size, const std::optional<Price>& price) {
  if (!price) return std::nullopt;
  const Usage usage{.input_tokens = size.input_tokens, .output_tokens = size.output_tokens};
  return static_cast<double>(size.calls) * cost_usd(usage, *price);
}

ModelCheck check_model(const std::string& model, ClientOptions options, const RunSize& size, bool offline) {
  if (!options.settings) options.settings = first_of({environment(), dotenv_here()});
  const Endpoint endpoint = resolve(model, options.settings);
  require_address(endpoint);
  ModelCheck check{.model = endpoint.name(),
                   .base_url = without_password(endpoint.base_url),
                   .wire = wire_name(endpoint.wire),
                   .key_source = endpoint.key_source,
                   .key_missing = endpoint.key_required && endpoint.key_source.empty(),
                   .price = PriceTable(options.prices_file).find(endpoint.name()),
                   .schema_mode = mode_name(endpoint.quirks.schema_mode)};
  check.run_usd = run_usd(size, check.price);
  if (offline || check.key_missing) return check;
  options.models = {model};
  const World world = real_world(options.settings);
  Client client(std::move(options), world);
  run_probes(client, world, check);
  check.schema_mode = mode_name(schema_mode(client.endpoint(), client.learned()));
  return check;
}

std::vector<ProviderKey> provider_keys(const Lookup& settings) {
  std::vector<ProviderKey> keys;
  for (const std::string& provider : provider_names()) {
    ProviderKey key{.provider = provider,
                    .variables = key_variables(provider),
                    .key_required = key_is_required(provider)};
    for (const std::string& variable : key.variables) {
      if (key.key_source.empty() && settings(variable)) key.key_source = variable;
    }
    keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace sextant::llm
