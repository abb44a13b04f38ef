#include "bench/request.h"

#include <nlohmann/json.hpp>

#include "base/check.h"

namespace sextant::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kConnect_s = 60;  // thousands of connections at once may wait for repeated handshakes

Json body_of(const Target& target, const load::Prompt& prompt, std::int64_t output_tokens) {
  Json body = {{"model", target.model}};
  if (target.endpoint == Endpoint::kChat) {
    SEXTANT_CHECK(prompt.ids.empty());  // a conversation is text
    body["messages"] = Json::array({{{"role", "user"}, {"content", prompt.text}}});
    body["max_completion_tokens"] = output_tokens;
    // Some servers know only the older name. Providers who refuse both together refuse ignore_eos as well.
    if (target.ignore_eos) body["max_tokens"] = output_tokens;
  } else {
    body["prompt"] = prompt.ids.empty() ? Json(prompt.text) : Json(prompt.ids);
    body["max_tokens"] = output_tokens;
  }
  body["temperature"] = 0.0;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  if (target.ignore_eos) body["ignore_eos"] = true;
  if (!target.extra_body.empty()) body.update(Json::parse(target.extra_body));
  return body;
}

}  // namespace

std::string url_of(std::string_view base_url, std::string_view path) {
  while (base_url.ends_with('/')) base_url.remove_suffix(1);
  if (base_url.ends_with("/v1")) base_url.remove_suffix(3);
  return std::string(base_url) + std::string(path);
}

http::Request request_to(const Target& target, std::string_view method, std::string_view path) {
  http::Request request{.method = std::string(method), .url = url_of(target.base_url, path)};
  request.timeouts = {.connect_s = kConnect_s,
                      .first_byte_s = target.timeout_s,
                      .silence_s = target.timeout_s,
                      .total_s = target.timeout_s};
  if (!target.api_key.empty()) request.secret_headers = {{"Authorization", "Bearer ", target.api_key}};
  return request;
}

http::Request completion_request(const Target& target, const load::Prompt& prompt,
                                 std::int64_t output_tokens) {
  http::Request request = request_to(
      target, "POST", target.endpoint == Endpoint::kChat ? "/v1/chat/completions" : "/v1/completions");
  request.headers = {{"Content-Type", "application/json"}, {"Accept", "text/event-stream"}};
  request.body = body_of(target, prompt, output_tokens).dump(-1, ' ', false, Json::error_handler_t::replace);
  return request;
}

}  // namespace sextant::bench
