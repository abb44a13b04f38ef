#include "bench/ready.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "http/client.h"

namespace sextant::bench {
namespace {

constexpr double kLongestAnswer_s = 10;

http::Request question(const Target& target, std::string_view path, double limit_s) {
  http::Request request = request_to(target, "GET", path);
  request.timeouts = {limit_s, limit_s, limit_s, limit_s};
  return request;
}

/// Empty: ready.
std::string attempt(http::Client& client, const Target& target, std::string_view path, double limit_s) {
  const http::Request request = question(target, path, limit_s);
  const http::Exchange exchange = client.send(request);
  if (exchange.failure) return exchange.failure->message;
  const int status = exchange.response.status;
  if (status == 404 && path == "/health") return attempt(client, target, "/v1/models", limit_s);
  return status == 200 ? "" : fmt::format("{} answers {}", request.url, status);
}

}  // namespace

std::string wait_until_ready(const Target& target, double at_most_s, const std::function<bool()>& stop) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  http::Client client;
  for (;;) {
    const double left_s = at_most_s - std::chrono::duration<double>(Clock::now() - begin).count();
    const std::string last = attempt(client, target, "/health", std::clamp(left_s, 1.0, kLongestAnswer_s));
    if (last.empty() || left_s <= 0 || stop()) return last;
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
}

std::string first_model(const Target& target) {
  http::Client client;
  const http::Request request = question(target, "/v1/models", kLongestAnswer_s);
  const http::Exchange exchange = client.send(request);
  if (exchange.failure) {
    throw base::OutsideError(
        fmt::format("--base-url: {}; is the server running there?", exchange.failure->message));
  }
  const auto answer = nlohmann::json::parse(exchange.response.body, nullptr, false);
  const auto id = nlohmann::json::json_pointer("/data/0/id");
  if (exchange.response.status != 200 || !answer.is_structured() || !answer.contains(id) ||
      !answer.at(id).is_string()) {
    throw base::OutsideError(fmt::format("--model: {} names no model (status {}); give the name", request.url,
                                         exchange.response.status));
  }
  return answer.at(id).get<std::string>();
}

}  // namespace sextant::bench
