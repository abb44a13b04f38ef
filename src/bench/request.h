// What is sent for one prompt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "http/message.h"
#include "http/secret.h"
#include "load/prompts.h"

namespace sextant::bench {

enum class Endpoint : std::uint8_t { kCompletions, kChat };

/// What all requests of a run have in common.
struct Target {
  std::string base_url{};  ///< "http://127.0.0.1:8000", with or without a final "/" or "/v1"
  Endpoint endpoint = Endpoint::kCompletions;
  std::string model{};
  http::Secret api_key{};  ///< empty: none is sent
  bool ignore_eos = true;
  std::string extra_body{};  ///< a JSON object whose fields replace or join the request's; empty: none
  double timeout_s = 21600;  ///< for one answer; InferenceX's client waits six hours
};

/// The base URL with a path of the API, such as "/v1/models".
std::string url_of(std::string_view base_url, std::string_view path);

/// Headers and time-outs, without a body. `path` is one of the API's.
http::Request request_to(const Target& target, std::string_view method, std::string_view path);

/// Greedy, streamed, with usage at the end: as InferenceX's client asks.
http::Request completion_request(const Target& target, const load::Prompt& prompt,
                                 std::int64_t output_tokens);

}  // namespace sextant::bench
