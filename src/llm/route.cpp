#include "llm/route.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "config/embedded_data.h"
#include "config/node.h"

namespace sextant::llm {
namespace {

const std::vector<std::string> kProviderKeys = {"wire",
                                                "base_url",
                                                "key_variables",
                                                "bearer_variables",
                                                "base_url_variables",
                                                "headers",
                                                "key_header",
                                                "key_required",
                                                "max_tokens_name",
                                                "max_tokens_name_elsewhere",
                                                "seed_name",
                                                "required_name",
                                                "schema_mode",
                                                "stream_usage",
                                                "short_tool_ids",
                                                "reasoning_apart",
                                                "require_parameters",
                                                "deployment_path",
                                                "api_version",
                                                "api_version_variables",
                                                "api_version_header",
                                                "returned_fields",
                                                "omit",
                                                "models"};

/// Makers whose models carry their name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kBareNames = {
    {{"gpt-", "openai"},
     {"chatgpt-", "openai"},
     {"o1", "openai"},
     {"o3", "openai"},
     {"o4-", "openai"},
     {"claude-", "anthropic"},
     {"gemini-", "gemini"}}};

config::Node providers() { return config::data_document("llm/providers.yaml"); }

std::vector<std::string> list_at(const config::Node& provider, std::string_view key) {
  std::vector<std::string> list;
  const config::Node* node = provider.find_set(key);
  if (node == nullptr) return list;
  for (const config::Node& item : config::require_sequence(*node).items)
    list.push_back(config::as_text(item));
  return list;
}

struct Found {
  std::string variable{};
  std::string value{};
};

std::optional<Found> first_set(const std::vector<std::string>& variables, const Lookup& settings) {
  for (const std::string& variable : variables) {
    if (auto value = settings(variable)) return Found{variable, *value};
  }
  return std::nullopt;
}

std::pair<std::string, std::string> split_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash != std::string_view::npos) {
    return {std::string(name.substr(0, slash)), std::string(name.substr(slash + 1))};
  }
  for (const auto& [prefix, provider] : kBareNames) {
    if (name.starts_with(prefix)) return {std::string(provider), std::string(name)};
  }
  throw base::UserError(
      {"--llm"}, "",
      fmt::format(
          "\"{}\" names no provider; write provider/model, for example anthropic/claude-sonnet-5-5 or "
          "ollama/qwen3; providers: {}",
          name, base::join(provider_names(), ", ")));
}

/// Names that LiteLLM also knows.
std::string usual_name(const std::string& provider) {
  if (provider == "ollama_chat") return "ollama";
  if (provider == "google") return "gemini";
  if (provider == "together") return "together_ai";
  if (provider == "fireworks") return "fireworks_ai";
  if (provider == "vllm") return "hosted_vllm";
  return provider;
}

[[noreturn]] void refuse_provider(const std::string& provider) {
  if (provider.starts_with("bedrock") || provider.starts_with("vertex_ai") ||
      provider.starts_with("sagemaker")) {
    throw base::UserError(
        {"--llm"}, "",
        fmt::format("{} is not spoken, since its requests need signatures of the cloud; put a LiteLLM proxy "
                    "in front of it and name it litellm_proxy/MODEL",
                    provider));
  }
  throw base::UserError(
      {"--llm"}, "",
      fmt::format("unknown provider \"{}\"{}; providers: {}; any other server with OpenAI's "
                  "chat format is openai_compatible/MODEL with OPENAI_COMPATIBLE_API_BASE",
                  provider, base::did_you_mean(provider, provider_names()),
                  base::join(provider_names(), ", ")));
}

Wire wire_of(const config::Node& provider) {
  const std::string name = config::as_text(config::require(provider, "wire"));
  if (name == "chat") return Wire::kChat;
  if (name == "anthropic") return Wire::kAnthropic;
  if (name == "gemini") return Wire::kGemini;
  if (name == "ollama") return Wire::kOllama;
  const config::Node& node = config::require(provider, "wire");
  throw base::UserError(
      node.position, node.path,
      fmt::format("unknown wire format \"{}\"; there are chat, anthropic, gemini and ollama", name));
}

SchemaMode schema_mode_of(const config::Node& provider) {
  const std::string name = config::text_or(provider, "schema_mode", "native");
  if (name == "native") return SchemaMode::kNative;
  if (name == "tool") return SchemaMode::kTool;
  if (name == "json_object") return SchemaMode::kJsonObject;
  if (name == "prompt") return SchemaMode::kPrompt;
  const config::Node& node = config::require(provider, "schema_mode");
  throw base::UserError(
      node.position, node.path,
      fmt::format("unknown mode \"{}\"; there are native, tool, json_object and prompt", name));
}

Quirks quirks_of(const config::Node& provider) {
  const Quirks usual;
  Quirks quirks{.max_tokens_name = config::text_or(provider, "max_tokens_name", usual.max_tokens_name),
                .seed_name = config::text_or(provider, "seed_name", usual.seed_name),
                .required_name = config::text_or(provider, "required_name", usual.required_name),
                .schema_mode = schema_mode_of(provider),
                .stream_usage = config::boolean_or(provider, "stream_usage", true),
                .short_tool_ids = config::boolean_or(provider, "short_tool_ids", false),
                .require_parameters = config::boolean_or(provider, "require_parameters", false),
                .reasoning_apart = config::boolean_or(provider, "reasoning_apart", false),
                .deployment_path = config::boolean_or(provider, "deployment_path", false),
                .api_version = config::text_or(provider, "api_version", ""),
                .returned_fields = list_at(provider, "returned_fields")};
  for (std::string& name : list_at(provider, "omit")) quirks.omit.insert(std::move(name));
  return quirks;
}

/// What is said about models whose name begins with one of `prefixes`.
void add_model_quirks(const config::Node& provider, const std::string& model, Quirks& quirks) {
  const config::Node* models = provider.find_set("models");
  if (models == nullptr) return;
  for (const config::Node& entry : config::require_sequence(*models).items) {
    const std::vector<std::string> prefixes = list_at(entry, "prefixes");
    if (std::ranges::none_of(prefixes, [&](const std::string& prefix) { return model.starts_with(prefix); }))
      continue;
    for (std::string& name : list_at(entry, "omit")) quirks.omit.insert(std::move(name));
  }
}

std::string checked_url(std::string url, const std::string& source) {
  while (url.ends_with('/')) url.pop_back();
  if (url.starts_with("http://") || url.starts_with("https://")) {
    if (url.find_first_of(" ?#") == std::string::npos) return url;
  } else if (source == "OLLAMA_HOST" && !url.empty()) {  // Ollama's own variable holds host:port
    return checked_url("http://" + url, source);
  }
  throw base::UserError({source}, "",
                        "this is no base URL; it must begin with https:// or http:// and hold no query");
}

std::string base_url_of(const config::Node& provider, const Lookup& settings) {
  const std::vector<std::string> variables = list_at(provider, "base_url_variables");
  if (const auto found = first_set(variables, settings)) return checked_url(found->value, found->variable);
  return config::text_or(provider, "base_url", "");
}

/// A header with a control character would be two headers, or none.
http::Secret checked_key(const Found& found) {
  const std::string key(base::trim(found.value));
  const bool printable = std::ranges::all_of(key, [](char c) { return c > ' ' && c < 0x7F; });
  if (printable) return http::Secret(key);
  throw base::UserError({found.variable}, "",
                        "the key holds a space or a character that no key has; set it anew");
}

void add_key(const config::Node& provider, const Lookup& settings, Endpoint& endpoint) {
  if (const auto key = first_set(list_at(provider, "key_variables"), settings)) {
    const std::string header = config::text_or(provider, "key_header", "Authorization");
    endpoint.secret_headers.push_back(
        {header, header == "Authorization" ? "Bearer " : "", checked_key(*key)});
    endpoint.key_source = key->variable;
  } else if (const auto token = first_set(list_at(provider, "bearer_variables"), settings)) {
    endpoint.secret_headers.push_back({"Authorization", "Bearer ", checked_key(*token)});
    endpoint.key_source = token->variable;
  }
}

void add_headers(const config::Node& provider, const Lookup& settings, Endpoint& endpoint) {
  if (const auto version = first_set(list_at(provider, "api_version_variables"), settings)) {
    endpoint.quirks.api_version = version->value;
  }
  if (const std::string header = config::text_or(provider, "api_version_header", ""); !header.empty()) {
    endpoint.headers.push_back({header, endpoint.quirks.api_version});
  }
  const config::Node* headers = provider.find_set("headers");
  if (headers == nullptr) return;
  for (const auto& [header, variable] : config::require_mapping(*headers).entries) {
    if (const auto value = settings(config::as_text(variable))) endpoint.headers.push_back({header, *value});
  }
}

}  // namespace

std::vector<std::string> provider_names() {
  std::vector<std::string> names;
  for (const auto& [name, unused] : providers().entries) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

Endpoint resolve(std::string_view name, const Lookup& settings) {
  auto [named_provider, model] = split_name(name);
  const std::string provider_name = usual_name(named_provider);
  const config::Node all = providers();
  const config::Node* provider = all.find(provider_name);
  if (provider == nullptr) refuse_provider(provider_name);
  config::refuse_unknown_keys(*provider, kProviderKeys);
  Endpoint endpoint{.provider = provider_name, .wire = wire_of(*provider)};
  constexpr std::string_view kResponses = "responses/";
  if (endpoint.wire == Wire::kChat && model.starts_with(kResponses)) {
    endpoint.wire = Wire::kResponses;
    model.erase(0, kResponses.size());
  }
  if (model.empty()) {
    throw base::UserError({"--llm"}, "",
                          fmt::format("\"{}\" names no model; write {}/MODEL", name, provider_name));
  }
  endpoint.model = model;
  endpoint.base_url = base_url_of(*provider, settings);
  endpoint.key_required = config::boolean_or(*provider, "key_required", true);
  endpoint.quirks = quirks_of(*provider);
  if (endpoint.base_url != config::text_or(*provider, "base_url", "")) {
    endpoint.quirks.max_tokens_name =
        config::text_or(*provider, "max_tokens_name_elsewhere", endpoint.quirks.max_tokens_name);
  }
  add_model_quirks(*provider, model, endpoint.quirks);
  add_headers(*provider, settings, endpoint);
  add_key(*provider, settings, endpoint);
  return endpoint;
}

std::vector<std::string> key_variables(const std::string& provider) {
  const config::Node all = providers();
  const config::Node* node = all.find(provider);
  if (node == nullptr) return {};
  std::vector<std::string> variables = list_at(*node, "key_variables");
  for (std::string& name : list_at(*node, "bearer_variables")) variables.push_back(std::move(name));
  return variables;
}

bool key_is_required(const std::string& provider) {
  const config::Node all = providers();
  const config::Node* node = all.find(provider);
  return node == nullptr || config::boolean_or(*node, "key_required", true);
}

void require_address(const Endpoint& endpoint) {
  if (!endpoint.base_url.empty()) return;
  const config::Node all = providers();
  const std::vector<std::string> variables = list_at(*all.find(endpoint.provider), "base_url_variables");
  throw base::UserError({"--llm"}, "",
                        fmt::format("{} has no fixed address; set {} to the base URL of the server",
                                    endpoint.provider, base::join(variables, " or ")));
}

void require_key(const Endpoint& endpoint) {
  if (!endpoint.key_required || !endpoint.key_source.empty()) return;
  throw base::UserError(
      {"--llm"}, "",
      fmt::format("{} needs a key and none is set; put it into the environment variable {}, or into a "
                  "file .env in this folder",
                  endpoint.provider, base::join(key_variables(endpoint.provider), " or ")));
}

std::vector<std::string> secrets_of(const Endpoint& endpoint) {
  std::vector<std::string> secrets;
  for (const http::SecretHeader& header : endpoint.secret_headers) secrets.push_back(header.value.reveal());
  const std::size_t scheme = endpoint.base_url.find("://");
  const std::size_t at = endpoint.base_url.find('@');
  if (scheme != std::string::npos && at != std::string::npos && at > scheme + 3) {
    secrets.push_back(endpoint.base_url.substr(scheme + 3, at - scheme - 3));
  }
  std::erase_if(secrets, [](const std::string& text) { return text.empty(); });
  return secrets;
}

}  // namespace sextant::llm
