// One request and what came of it. For client.cpp only.
#pragma once

#include <memory>
#include <optional>

#include "llm/budget.h"
#include "llm/price.h"
#include "llm/wire.h"

namespace sextant::llm {

struct Attempt {
  http::Exchange exchange{};
  Response response{};
  std::optional<Fault> fault{};  ///< empty: `response` is usable
  bool complete = false;         ///< the provider has said all, so its usage is final
  double latency_s = 0;
  bool on_record = false;  ///< it came from the transcript that the run goes on with
};

/// A stream is read when somebody listens, and where a provider would not hold a connection for as long as a
/// long answer takes.
bool must_stream(bool listened_to, const Request& request, const Endpoint& endpoint);

/// Takes the body as it arrives and judges the exchange in the end.
class AttemptReader {
 public:
  AttemptReader(const Request& request, const Endpoint& endpoint, const Learned& learned, bool stream,
                OnText on_text);
  void feed(std::string_view portion);
  Attempt judge(http::Exchange exchange);

 private:
  Parsed parsed(const http::Response& response);

  const Request& request_;
  const Endpoint& endpoint_;
  const Learned& learned_;
  OnText on_text_;
  std::unique_ptr<StreamReader> stream_;
};

/// The most that an attempt can be charged.
Amount most_of(std::size_t body_bytes, const Request& request, const std::optional<Price>& price);

/// What it is charged, as budget.h says.
Amount charge_of(const Attempt& attempt, const Amount& most, const std::optional<Price>& price);

}  // namespace sextant::llm
