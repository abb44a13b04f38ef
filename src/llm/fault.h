// Why a call brought no answer, in one vocabulary for all providers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "http/message.h"

namespace sextant::llm {

enum class FaultKind : std::uint8_t {
  kUnreachable,     ///< no connection, or the certificate was not accepted
  kBroken,          ///< the connection or the stream ended too early
  kTimeout,         ///< a phase took longer than its limit
  kRateLimited,     ///< 429
  kOverloaded,      ///< 503, 529 and errors of that name
  kServer,          ///< other 5xx, 408, 409
  kQuota,           ///< no credit left, or a limit that waiting does not lift
  kAuthentication,  ///< the key is not accepted
  kPermission,
  kNotFound,     ///< no such model, deployment or path
  kBadRequest,   ///< 400, 422: `parameter` names what is not accepted, where known
  kTooLong,      ///< the conversation exceeds the model's context
  kRefused,      ///< the model or a filter declined
  kTruncated,    ///< cut off at the limit of tokens before an answer
  kEmpty,        ///< complete, and nothing in it
  kBadReply,     ///< not what the format promises
  kInvalid,      ///< JSON that does not match the schema, also after asking again
  kBudget,       ///< the call could exceed the budget; it was not sent
  kDeadline,     ///< no time left; also when the provider asks to wait longer than that
  kCircuitOpen,  ///< the provider failed repeatedly and is left alone for a while
  kCancelled,
};

struct Fault {
  FaultKind kind = FaultKind::kServer;
  std::string message{};  ///< what happened and, where there is something, what to do; holds no key
  int status = 0;         ///< of HTTP; 0: none came
  std::string code{};     ///< the provider's own name for it
  std::string parameter{};
  std::string request_id{};
  std::optional<double> retry_after_s{};  ///< as the provider asks
  bool retryable = false;
};

/// "rate limited", "no answer in it".
std::string to_text(FaultKind kind);

/// The provider, the way to it or the account is at fault, not this one request: another request would fail
/// too.
bool is_unavailable(FaultKind kind);

/// What a response with an error status, or an error inside a stream, says. Reads the shapes of all
/// providers, of gateways that answer in HTML, and the headers retry-after, retry-after-ms, x-should-retry
/// and request ids.
Fault read_fault(const http::Response& response);

/// The fault of an error object that came inside a body or stream of status 200 (JSON text).
Fault read_inner_fault(const std::string& error_json);

/// The fault of an exchange without a response.
Fault transport_fault(const http::Failure& failure);

/// Seconds to wait according to retry-after-ms or retry-after: a number, or a date against the response's own
/// `Date`. Empty where there is none, or none that makes sense.
std::optional<double> retry_after_s(const std::vector<http::Header>& headers);

}  // namespace sextant::llm
