// Errors of all providers, told apart by status, code and type; a message is never interpreted (it changes
// with releases and languages), but for the name of a parameter that the client itself has sent.
//
// Shapes and codes: platform.openai.com/docs/guides/error-codes, docs.claude.com/en/api/errors,
// ai.google.dev/gemini-api/docs/troubleshooting, openrouter.ai/docs/api-reference/errors,
// api-docs.deepseek.com (error codes), docs.ollama.com/api, FastAPI's validation errors (vLLM, SGLang,
// LiteLLM's proxy).
#include "llm/fault.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "base/text.h"
#include "llm/json.h"

namespace sextant::llm {
namespace {

constexpr std::size_t kQuotedBytes = 300;  // of a provider's message in one of ours

/// What all shapes of errors come to.
struct ErrorText {
  std::string message{};
  std::string type{};
  std::string code{};
  std::string parameter{};
  Json details{};
};

std::string scalar_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() ? dump(value) : std::string();
}

/// {"detail": [{"loc": ["body", "max_tokens"], "msg": "..."}]}
void read_validation(const Json& detail, ErrorText& error) {
  if (detail.is_string()) error.message = detail.get<std::string>();
  if (!detail.is_array() || detail.empty()) return;
  error.message = text_at(detail[0], "msg");
  const Json& place = at(detail[0], "loc");
  if (place.is_array() && place.size() > 1) error.parameter = scalar_text(place[1]);
}

void read_object(const Json& object, ErrorText& error) {
  error.message = text_at(object, "message");
  error.type = text_at(object, "type");
  if (error.type.empty()) error.type = text_at(object, "status");
  error.code = scalar_text(at(object, "code"));
  error.parameter = text_at(object, "param");
  error.details = at(object, "details");
  if (const std::string code = text_at(error.details, "error_code"); !code.empty()) error.code = code;
  if (const std::string inner = text_at(at(object, "innererror"), "code"); !inner.empty()) error.code = inner;
  if (const std::string upstream = text_at(at(object, "metadata"), "provider_name"); !upstream.empty()) {
    error.message += fmt::format(" (from {})", upstream);
  }
}

ErrorText read_error(const Json& body) {
  ErrorText error;
  if (body.is_array() && !body.empty()) return read_error(body[0]);
  const Json& inner = at(body, "error");
  if (inner.is_object()) {
    read_object(inner, error);
  } else if (inner.is_string()) {
    error.message = inner.get<std::string>();
  } else if (!at(body, "detail").is_null()) {
    read_validation(at(body, "detail"), error);
  } else if (body.is_object()) {
    read_object(body, error);
  }
  return error;
}

template <std::size_t N>
bool any_of(const std::array<std::string_view, N>& names, const ErrorText& error) {
  return std::ranges::any_of(names, [&](std::string_view name) {
    return base::lower_case(error.code) == name || base::lower_case(error.type) == name;
  });
}

constexpr std::array<std::string_view, 7> kQuotaNames = {
    "insufficient_quota",           "billing_hard_limit_reached", "billing_not_active", "billing_error",
    "enforced_spend_limit_reached", "insufficient_credits",       "quota_exceeded"};
constexpr std::array<std::string_view, 3> kFilterNames = {"content_filter", "responsibleaipolicyviolation",
                                                          "content_policy_violation"};
constexpr std::array<std::string_view, 3> kTooLongNames = {"context_length_exceeded",
                                                           "string_above_max_length", "request_too_large"};
constexpr std::array<std::string_view, 5> kOverloadNames = {"overloaded_error", "overloaded", "unavailable",
                                                            "engine_overloaded", "slow_down"};
constexpr std::array<std::string_view, 4> kRateNames = {"rate_limit_error", "rate_limit_exceeded",
                                                        "resource_exhausted", "too_many_requests"};
constexpr std::array<std::string_view, 2> kKeyNames = {"authentication_error", "invalid_api_key"};
constexpr std::array<std::string_view, 3> kBadNames = {"invalid_request_error", "invalid_argument",
                                                       "invalid_prompt"};

/// Google's list of details: a wait, a quota that only the next day restores, a key that is none.
struct GoogleDetails {
  std::optional<double> retry_s{};
  bool exhausted = false;
  bool bad_key = false;
};

GoogleDetails google_details(const Json& details) {
  GoogleDetails read;
  if (!details.is_array()) return read;
  for (const Json& detail : details) {
    if (const std::string delay = text_at(detail, "retryDelay"); !delay.empty()) {
      const double seconds = std::strtod(delay.c_str(), nullptr);
      if (seconds > 0) read.retry_s = seconds;
    }
    if (text_at(detail, "reason") == "API_KEY_INVALID") read.bad_key = true;
    const Json& violations = at(detail, "violations");
    if (!violations.is_array()) continue;
    for (const Json& violation : violations) {
      if (text_at(violation, "quotaId").find("PerDay") != std::string::npos) read.exhausted = true;
      if (scalar_text(at(violation, "quotaValue")) == "0") read.exhausted = true;
    }
  }
  return read;
}

FaultKind kind_by_status(int status) {
  switch (status) {
    case 401:
      return FaultKind::kAuthentication;
    case 402:
      return FaultKind::kQuota;
    case 403:
      return FaultKind::kPermission;
    case 404:
    case 405:
      return FaultKind::kNotFound;
    case 413:
      return FaultKind::kTooLong;
    case 429:
      return FaultKind::kRateLimited;
    case 498:  // Groq: capacity exceeded
    case 503:
    case 529:
      return FaultKind::kOverloaded;
    default:
      break;
  }
  return status == 408 || status == 409 || status >= 500 ? FaultKind::kServer : FaultKind::kBadRequest;
}

FaultKind kind_of(const ErrorText& error, int status) {
  if (any_of(kQuotaNames, error)) return FaultKind::kQuota;
  if (any_of(kFilterNames, error)) return FaultKind::kRefused;
  if (any_of(kTooLongNames, error)) return FaultKind::kTooLong;
  if (any_of(kKeyNames, error)) return FaultKind::kAuthentication;
  if (status != 0) return kind_by_status(status);
  if (any_of(kOverloadNames, error)) return FaultKind::kOverloaded;
  if (any_of(kRateNames, error)) return FaultKind::kRateLimited;
  if (any_of(kBadNames, error)) return FaultKind::kBadRequest;
  return FaultKind::kServer;
}

bool waiting_helps(FaultKind kind) {
  return kind == FaultKind::kRateLimited || kind == FaultKind::kOverloaded || kind == FaultKind::kServer;
}

std::string advice(FaultKind kind) {
  switch (kind) {
    case FaultKind::kAuthentication:
      return "; check the key";
    case FaultKind::kPermission:
      return "; the key may not use this model";
    case FaultKind::kNotFound:
      return "; check the model's name and the base URL";
    case FaultKind::kQuota:
      return "; waiting does not help: see the account's credit and limits";
    default:
      return "";
  }
}

std::string first_words(std::string_view body) {
  std::string words;
  for (const char c : base::trim(body)) words += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return words;
}

Fault make_fault(ErrorText error, int status, const std::string& body) {
  if (error.message.empty()) error.message = error.code.empty() ? first_words(body) : error.code;
  if (error.message.size() > kQuotedBytes) error.message = error.message.substr(0, kQuotedBytes) + "…";
  Fault fault{
      .kind = kind_of(error, status), .status = status, .code = error.code, .parameter = error.parameter};
  if (fault.code.empty()) fault.code = error.type;
  const GoogleDetails google = google_details(error.details);
  fault.retry_after_s = google.retry_s;
  if (google.exhausted) fault.kind = FaultKind::kQuota;
  if (google.bad_key) fault.kind = FaultKind::kAuthentication;
  fault.retryable = waiting_helps(fault.kind);
  fault.message =
      fmt::format("{}{}: {}{}", to_text(fault.kind), status == 0 ? "" : fmt::format(" (status {})", status),
                  error.message.empty() ? "no explanation" : error.message, advice(fault.kind));
  return fault;
}

/// "Tue, 01 Dec 2026 10:00:00 GMT" (RFC 9110, section 5.6.7) in seconds since 1970.
std::optional<double> http_date_s(const std::string& text) {
  std::tm time{};
  const char* end = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &time);
  if (end == nullptr) return std::nullopt;
  return static_cast<double>(::timegm(&time));
}

std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(value) || value < 0) return std::nullopt;
  if (!base::trim(end).empty()) return std::nullopt;
  return value;
}

}  // namespace

std::string to_text(FaultKind kind) {
  constexpr std::array<std::string_view, 21> kNames = {"unreachable",
                                                       "connection broken",
                                                       "timed out",
                                                       "rate limited",
                                                       "overloaded",
                                                       "server error",
                                                       "quota exhausted",
                                                       "key not accepted",
                                                       "not permitted",
                                                       "not found",
                                                       "request not accepted",
                                                       "conversation too long",
                                                       "refused",
                                                       "truncated",
                                                       "empty answer",
                                                       "unreadable answer",
                                                       "invalid answer",
                                                       "budget reached",
                                                       "deadline reached",
                                                       "provider left alone",
                                                       "cancelled"};
  return std::string(kNames[static_cast<std::size_t>(kind)]);
}

bool is_unavailable(FaultKind kind) {
  switch (kind) {
    case FaultKind::kUnreachable:
    case FaultKind::kBroken:
    case FaultKind::kTimeout:
    case FaultKind::kRateLimited:
    case FaultKind::kOverloaded:
    case FaultKind::kServer:
    case FaultKind::kQuota:
    case FaultKind::kAuthentication:
    case FaultKind::kPermission:
    case FaultKind::kNotFound:
    case FaultKind::kDeadline:
    case FaultKind::kCircuitOpen:
      return true;
    default:
      return false;
  }
}

std::optional<double> retry_after_s(const std::vector<http::Header>& headers) {
  if (const auto text = http::find_header(headers, "retry-after-ms")) {
    if (const auto wait_ms = number_of(*text); wait_ms && *wait_ms > 0) return *wait_ms / 1000;
  }
  const auto text = http::find_header(headers, "retry-after");
  if (!text) return std::nullopt;
  if (const auto wait_s = number_of(*text)) return *wait_s > 0 ? wait_s : std::nullopt;
  const auto until_s = http_date_s(*text);
  const auto date = http::find_header(headers, "date");
  const auto now_s = date ? http_date_s(*date) : std::nullopt;
  if (!until_s || !now_s || *until_s <= *now_s) return std::nullopt;
  return *until_s - *now_s;
}

Fault read_fault(const http::Response& response) {
  if (response.status >= 300 && response.status < 400) {
    return {.kind = FaultKind::kNotFound,
            .message = fmt::format(
                "not found (status {}): the server redirects elsewhere; check the base URL", response.status),
            .status = response.status};
  }
  Fault fault = make_fault(read_error(parse_or_discarded(response.body)), response.status, response.body);
  if (const auto wait_s = retry_after_s(response.headers)) fault.retry_after_s = wait_s;
  if (fault.status == 402 && fault.retry_after_s) fault.retryable = true;  // OpenRouter
  const auto should = http::find_header(response.headers, "x-should-retry");
  if (should == "true") fault.retryable = true;
  if (should == "false") fault.retryable = false;
  for (const std::string_view name : {"request-id", "x-request-id", "apim-request-id"}) {
    if (const auto id = http::find_header(response.headers, name)) fault.request_id = *id;
  }
  return fault;
}

Fault read_inner_fault(const std::string& error_json) {
  Json body = parse_or_discarded(error_json);
  ErrorText error = read_error(body);
  // OpenRouter gives the status that the error would have had as its code.
  int status = 0;
  if (const auto number = number_of(error.code); number && *number >= 400 && *number < 600) {
    status = static_cast<int>(*number);
  }
  Fault fault = make_fault(std::move(error), status, error_json);
  fault.message = "in the answer: " + fault.message;
  return fault;
}

Fault transport_fault(const http::Failure& failure) {
  Fault fault{.message = failure.message, .retryable = true};
  switch (failure.kind) {
    case http::FailureKind::kBadUrl:
      fault.kind = FaultKind::kUnreachable;
      fault.retryable = false;
      fault.message += "; check the base URL and the key";
      break;
    case http::FailureKind::kTls:
      fault.kind = FaultKind::kUnreachable;
      fault.retryable = false;
      fault.message += "; where a private authority signed the certificate, name its file in SSL_CERT_FILE";
      break;
    case http::FailureKind::kConnect:
      fault.kind = FaultKind::kUnreachable;
      break;
    case http::FailureKind::kTimeout:
      fault.kind = FaultKind::kTimeout;
      break;
    case http::FailureKind::kCancelled:
      fault.kind = FaultKind::kCancelled;
      fault.retryable = false;
      break;
    case http::FailureKind::kTooLarge:
      fault.kind = FaultKind::kBadReply;
      fault.retryable = false;
      break;
    case http::FailureKind::kBroken:
      fault.kind = FaultKind::kBroken;
      break;
  }
  fault.message = to_text(fault.kind) + ": " + fault.message;
  return fault;
}

}  // namespace sextant::llm
