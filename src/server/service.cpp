#include "server/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace sextant::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kModels = "/v1/models";

http::Response json_response(std::string body) {
  return {.status = 200, .headers = {{"Content-Type", "application/json"}}, .body = std::move(body)};
}

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Takes as long for a wrong key as for the right one, wherever they differ.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0u : 1u;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^
                                        static_cast<unsigned char>(b.empty() ? '\0' : b[i % b.size()]));
  }
  return difference == 0;
}

std::chrono::sys_seconds now_of(const World& world) {
  return std::chrono::sys_seconds(std::chrono::seconds(world.unix_s()));
}

}  // namespace

Service::Service(TextModel model, ServiceOptions options, World world)
    : model_(std::move(model)),
      options_(std::move(options)),
      world_(std::move(world)),
      begun_unix_s_(world_.unix_s()),
      generation_(model_, metrics_, world_, options_.most_sequences),
      preparing_(options_.preparing_threads, options_.most_preparing) {}

void Service::stop() {
  preparing_.stop();
  generation_.stop();
}

std::span<const Service::Route> Service::routes() {
  static constexpr std::array<Route, 11> kRoutes = {{
      {"GET", "/health", &Service::health, true, false},
      {"HEAD", "/health", &Service::health, true, false},
      {"GET", "/metrics", &Service::metrics, true, false},
      {"HEAD", "/metrics", &Service::metrics, true, false},
      {"GET", "/ping", &Service::health, true, false},
      {"GET", kModels, &Service::models, false, false},
      {"GET", "/v1/models/", &Service::one_model, false, false},
      {"POST", "/v1/chat/completions", nullptr, false, true},
      {"POST", "/v1/completions", nullptr, false, true},
      {"POST", "/tokenize", &Service::tokenize, false, true},
      {"POST", "/detokenize", &Service::detokenize, false, true},
  }};
  return kRoutes;
}

void Service::handle(http::ServerRequest request, http::Responder responder) {
  const double arrival_s = world_.clock_s();
  const Route* found = nullptr;
  std::vector<std::string> methods;
  for (const Route& route : routes()) {
    const bool prefix = route.path.ends_with('/');
    if (prefix ? !request.path.starts_with(route.path) : request.path != route.path) continue;
    methods.emplace_back(route.method);
    if (route.method == request.method) found = &route;
  }
  if (methods.empty()) {
    return refuse(
        {.status = 404, .message = fmt::format("there is nothing at {} {}", request.method, request.path)},
        responder);
  }
  if (found == nullptr) {
    return refuse({.status = 405,
                   .message = fmt::format("{} takes {}, not {}", request.path, fmt::join(methods, ", "),
                                          request.method)},
                  responder);
  }
  if (!found->open && !may_ask(request)) {
    return refuse({.status = 401,
                   .message = "the API key is missing or wrong; send the header Authorization: Bearer KEY",
                   .code = "invalid_api_key"},
                  responder);
  }
  if (!found->prepared) return run(*found, request, responder, arrival_s);
  const bool posted = preparing_.post([this, found, request = std::move(request), responder, arrival_s] {
    run(*found, request, responder, arrival_s);
  });
  if (!posted) {
    refuse({.status = 503, .message = "too many requests are waiting to be read", .retry_after_s = 1},
           responder);
  }
}

void Service::run(const Route& route, const http::ServerRequest& request, const http::Responder& responder,
                  double arrival_s) {
  try {
    if (route.answer == nullptr) return generate(request, responder, arrival_s);
    responder.answer((this->*route.answer)(request));
  } catch (const RequestError& error) {
    refuse(error.error(), responder);
  } catch (const base::UserError& error) {
    refuse(api_error(error), responder);
  }
}

void Service::refuse(const ApiError& error, const http::Responder& responder) {
  metrics_.request_refused(error.status);
  responder.answer(error_response(error));
}

bool Service::may_ask(const http::ServerRequest& request) const {
  if (options_.api_keys.empty()) return true;
  constexpr std::string_view kBearer = "bearer ";  // the scheme's case does not matter: RFC 9110, 11.1
  const std::string given = http::find_header(request.headers, "Authorization").value_or("");
  if (base::lower_case(given.substr(0, kBearer.size())) != kBearer) return false;
  bool accepted = false;
  for (const http::Secret& key : options_.api_keys) {
    accepted =
        equal_in_constant_time(std::string_view(given).substr(kBearer.size()), key.reveal()) || accepted;
  }
  return accepted;
}

void Service::require_model(const std::string& name) const {
  if (name.empty() || std::ranges::find(model_.names, name) != model_.names.end()) return;
  throw RequestError(
      {.status = 404,
       .message = fmt::format("there is no model '{}'; served is {}", name, fmt::join(model_.names, ", ")),
       .param = "model",
       .code = "model_not_found"});
}

void Service::generate(const http::ServerRequest& request, const http::Responder& responder,
                       double arrival_s) {
  if (draining_) {
    throw RequestError({.status = 503, .message = "the server is shutting down", .retry_after_s = 5});
  }
  if (options_.engine_fault) {
    if (const std::string fault = options_.engine_fault(); !fault.empty()) {
      throw RequestError({.status = 503, .message = fault, .retry_after_s = 5});
    }
  }
  const bool chat = request.path == "/v1/chat/completions";
  GenerationRequest parsed = chat
                                 ? parse_chat_request(request.body, model_.defaults, model_.vocabulary)
                                 : parse_completion_request(request.body, model_.defaults, model_.vocabulary);
  require_model(parsed.model);
  std::vector<EncodedPrompt> prompts = encode_prompts(model_, parsed, now_of(world_));
  generation_.start(std::move(parsed), std::move(prompts), responder, arrival_s);
}

// ---- the small ones

http::Response Service::health(const http::ServerRequest&) {
  const std::string fault = options_.engine_fault ? options_.engine_fault() : "";
  if (fault.empty() && !draining_) return json_response(R"({"status":"ok"})");
  http::Response response = json_response(text_of(
      {{"status", draining_ ? "draining" : "failed"}, {"reason", fault.empty() ? Json() : Json(fault)}}));
  response.status = 503;
  return response;
}

http::Response Service::metrics(const http::ServerRequest&) {
  std::vector<Sample> samples;
  if (options_.engine_samples) samples = options_.engine_samples();
  samples.push_back({.name = "sequences_under_way",
                     .help = "Sequences that the engine has.",
                     .value = static_cast<double>(sequences())});
  return {.status = 200,
          .headers = {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
          .body = metrics_.text(samples)};
}

std::string Service::model_document(const std::string& name) const {
  return text_of({{"id", name},
                  {"object", "model"},
                  {"created", begun_unix_s_},
                  {"owned_by", "sextant"},
                  {"max_model_len", model_.longest_tokens}});
}

http::Response Service::models(const http::ServerRequest&) {
  std::vector<std::string> documents;
  for (const std::string& name : model_.names) documents.push_back(model_document(name));
  return json_response(fmt::format(R"({{"object":"list","data":[{}]}})", fmt::join(documents, ",")));
}

http::Response Service::one_model(const http::ServerRequest& request) {
  const std::string name = request.path.substr(kModels.size() + 1);
  require_model(name);
  return json_response(model_document(name.empty() ? model_.names.front() : name));
}

http::Response Service::tokenize(const http::ServerRequest& request) {
  const TokenizeRequest parsed = parse_tokenize_request(request.body);
  require_model(parsed.parts.model);
  const std::vector<TokenId> ids = encode_only(model_, parsed.parts, now_of(world_));
  Json document = {{"count", ids.size()}, {"max_model_len", model_.longest_tokens}, {"tokens", ids}};
  if (parsed.return_token_strings) {
    Json& texts = document["token_strs"] = Json::array();
    for (const TokenId id : ids) texts.push_back(token_bytes(model_, id));
  }
  return json_response(text_of(document));
}

http::Response Service::detokenize(const http::ServerRequest& request) {
  const std::vector<TokenId> ids = parse_detokenize_request(request.body, model_.vocabulary);
  return json_response(text_of({{"prompt", decode(model_, ids, false)}}));
}

http::ServerOptions server_options(std::string host, int port) {
  http::ServerOptions options{.host = std::move(host), .port = port};
  options.error_type = "application/json";
  options.error_body = [](int status, const std::string& message) {
    return error_json({.status = status, .message = message});
  };
  return options;
}

}  // namespace sextant::server
