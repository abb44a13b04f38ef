#include "server/api_error.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace sextant::server {
namespace {

std::string type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

ApiError api_error(const base::UserError& error) {
  return {.status = 400, .message = error.what(), .param = error.key_path()};
}

std::string error_json(const ApiError& error) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  const Json document = {{"error",
                          {{"message", error.message},
                           {"type", type_of(error.status)},
                           {"param", or_null(error.param)},
                           {"code", or_null(error.code)}}}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

http::Response error_response(const ApiError& error) {
  http::Response response{
      .status = error.status, .headers = {{"Content-Type", "application/json"}}, .body = error_json(error)};
  if (error.retry_after_s > 0) {
    response.headers.push_back(
        {"Retry-After", std::to_string(static_cast<long>(std::ceil(error.retry_after_s)))});
  }
  if (error.status == 401) response.headers.push_back({"WWW-Authenticate", "Bearer"});
  return response;
}

}  // namespace sextant::server
