#include "llm/transcript.h"

#include <fmt/core.h>

#include <deque>
#include <map>
#include <mutex>

#include "base/error.h"
#include "journal/content_hash.h"
#include "journal/keys.h"
#include "llm/fault.h"
#include "llm/route.h"

namespace sextant::llm {

namespace {

/// What kind of failure it was stands at the beginning of its message.
http::Failure recorded_failure(const std::string& error) {
  const bool unreachable = error.starts_with(to_text(FaultKind::kUnreachable));
  const bool late = error.starts_with(to_text(FaultKind::kTimeout));
  const http::FailureKind kind = unreachable ? http::FailureKind::kConnect
                                 : late      ? http::FailureKind::kTimeout
                                             : http::FailureKind::kBroken;
  return {kind, "as recorded: " + error, !unreachable};
}

}  // namespace

std::string recorded_request(const Endpoint& endpoint, const http::Request& request) {
  const std::string path = request.url.substr(endpoint.base_url.size());
  const std::string text = fmt::format("{} {} {}\n{}", endpoint.name(), request.method, path, request.body);
  return journal::redact_keys(text, secrets_of(endpoint));
}

struct Replay::State {
  std::mutex mutex;
  std::map<std::string, std::deque<http::Exchange>> by_hash;
};

Replay::Replay(std::span<const journal::LlmExchange> exchanges) : state_(std::make_shared<State>()) {
  for (const journal::LlmExchange& exchange : exchanges) {
    http::Exchange served{.response = {.status = static_cast<int>(exchange.http_status.value_or(0)),
                                       .body = exchange.response}};
    if (!exchange.http_status) {
      served.failure = recorded_failure(exchange.error);
    }
    state_->by_hash[journal::sha256(exchange.request)].push_back(std::move(served));
  }
}

std::optional<http::Exchange> Replay::find(const std::string& recorded_request) const {
  const std::scoped_lock lock(state_->mutex);
  const auto found = state_->by_hash.find(journal::sha256(recorded_request));
  if (found == state_->by_hash.end() || found->second.empty()) return std::nullopt;
  http::Exchange exchange = std::move(found->second.front());
  found->second.pop_front();
  return exchange;
}

http::Exchange Replay::answer(const std::string& recorded_request) const {
  if (auto exchange = find(recorded_request)) return std::move(*exchange);
  const std::string hash = journal::sha256(recorded_request);
  const std::scoped_lock lock(state_->mutex);
  const std::string first_line = recorded_request.substr(0, recorded_request.find('\n'));
  throw base::UserError(
      fmt::format("replay: no {}recorded answer for the request {} ({}); the run was recorded with other "
                  "inputs, or by another version",
                  state_->by_hash.contains(hash) ? "further " : "", hash.substr(0, 12), first_line));
}

std::size_t Replay::left() const {
  const std::scoped_lock lock(state_->mutex);
  std::size_t count = 0;
  for (const auto& [hash, exchanges] : state_->by_hash) count += exchanges.size();
  return count;
}

}  // namespace sextant::llm
