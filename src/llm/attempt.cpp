#include "llm/attempt.h"

#include <fmt/core.h>

#include "base/text.h"

namespace sextant::llm {
namespace {

/// Anthropic's client libraries refuse an unstreamed call that may last over ten minutes, reckoning an hour
/// for 128,000 tokens: 600 s / 3600 s x 128,000.
constexpr std::int64_t kLongestUnstreamedTokens = 21'333;

/// Events where one document was asked for: some gateways stream whatever is asked.
bool looks_like_events(std::string_view body) {
  const std::string_view text = base::trim(body);
  return text.starts_with("data:") || text.starts_with("event:") || text.starts_with(": ");
}

/// One document where events were asked for; no event begins with a brace.
bool is_document(std::string_view body) { return base::trim(body).starts_with('{'); }

std::string short_text(const std::string& text) {
  return text.size() > 200 ? text.substr(0, 200) + "…" : text;
}

/// What makes a whole answer unusable.
std::optional<Fault> fault_of(const Response& response, const Request& request) {
  if (response.finish == Finish::kRefused) {
    return Fault{.kind = FaultKind::kRefused, .message = "refused: " + short_text(response.refusal)};
  }
  const bool nothing = base::trim(response.text).empty() && response.tool_calls.empty();
  const bool needs_all = request.output.has_value() || !response.tool_calls.empty();
  if (response.finish == Finish::kLength && (nothing || needs_all)) {
    return Fault{.kind = FaultKind::kTruncated,
                 .message = fmt::format(
                     "truncated: the answer was cut off at the limit of {} tokens before it could be "
                     "used{}; raise the limit or lower the effort",
                     request.max_output_tokens,
                     response.usage.reasoning_tokens > 0
                         ? fmt::format(" ({} of them were reasoning)", response.usage.reasoning_tokens)
                         : "")};
  }
  if (!nothing) return std::nullopt;
  return Fault{.kind = FaultKind::kEmpty,
               .message = fmt::format(
                   "empty answer: the model says that it is complete ({}) and there is nothing in it",
                   response.finish_text.empty() ? "no reason given" : response.finish_text),
               .retryable = true};
}

}  // namespace

bool must_stream(bool listened_to, const Request& request, const Endpoint& endpoint) {
  return listened_to ||
         (endpoint.wire == Wire::kAnthropic && request.max_output_tokens > kLongestUnstreamedTokens);
}

AttemptReader::AttemptReader(const Request& request, const Endpoint& endpoint, const Learned& learned,
                             bool stream, OnText on_text)
    : request_(request),
      endpoint_(endpoint),
      learned_(learned),
      on_text_(std::move(on_text)),
      stream_(stream ? stream_reader(request, endpoint, learned) : nullptr) {}

void AttemptReader::feed(std::string_view portion) {
  if (stream_) stream_->feed(portion, on_text_);
}

Parsed AttemptReader::parsed(const http::Response& response) {
  if (stream_ && !(endpoint_.wire != Wire::kOllama && is_document(response.body))) return stream_->finish();
  if (!stream_ && looks_like_events(response.body)) {
    const auto reader = stream_reader(request_, endpoint_, learned_);
    reader->feed(response.body, {});
    return reader->finish();
  }
  return from_wire(response.body, request_, endpoint_, learned_);
}

Attempt AttemptReader::judge(http::Exchange exchange) {
  Attempt attempt{.exchange = std::move(exchange)};
  const http::Response& response = attempt.exchange.response;
  if (attempt.exchange.failure) {
    attempt.fault = transport_fault(*attempt.exchange.failure);
    return attempt;
  }
  if (response.status < 200 || response.status >= 300) {
    attempt.fault = read_fault(response);
    return attempt;
  }
  Parsed read = parsed(response);
  attempt.response = std::move(read.response);
  attempt.complete = !read.fault.has_value();
  attempt.fault = read.fault ? read.fault : fault_of(attempt.response, request_);
  return attempt;
}

Amount most_of(std::size_t body_bytes, const Request& request, const std::optional<Price>& price) {
  const std::int64_t input = most_input_tokens(body_bytes);
  return {.tokens = input + request.max_output_tokens,
          .usd = price ? most_usd(input, request.max_output_tokens, *price) : 0};
}

Amount charge_of(const Attempt& attempt, const Amount& most, const std::optional<Price>& price) {
  const Usage& usage = attempt.response.usage;
  if (attempt.complete && usage.reported) {
    return {.tokens = usage.input_tokens + usage.output_tokens, .usd = price ? cost_usd(usage, *price) : 0};
  }
  if (attempt.exchange.failure) return attempt.exchange.failure->sent ? most : Amount{};
  const int status = attempt.exchange.response.status;
  const bool gave_up_waiting =
      status == 408 || status == 504 || status == 524;  // the model may have answered
  return status >= 300 && !gave_up_waiting ? Amount{} : most;
}

}  // namespace sextant::llm
