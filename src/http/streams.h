// Thousands of responses at once on the calling thread.
//
//   Streams streams({}, {.on_body = …, .on_end = …});
//   streams.start(1, request);
//   while (streams.open() > 0) streams.turn(0.1);
//
// What holds for Client holds here: certificates are verified, redirects are not followed, proxies come from
// the environment, each phase has its time-out (looked at four times a second), connections are kept.
// HTTP/1.1 only, one request a connection at a time, so that streams do not wait for each other.
//
// A turn's cost grows with what arrived, not with how many streams are open (epoll under libcurl's
// socket interface). Nothing happens between turns. Callbacks run within turn(); on_end may start() and
// cancel(), on_body may not. Not for several threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/client.h"
#include "http/message.h"

namespace sextant::http {

using StreamId = std::uint64_t;

/// How a stream ended: with `failure`, or with a whole response. `refusal` is the body of a response whose
/// status is not 2xx, its first 64 KiB; those of 2xx went to on_body.
struct StreamEnd {
  int status = 0;  ///< 0: none came
  std::string refusal{};
  std::optional<Failure> failure{};
};

struct StreamHandlers {
  /// A portion of the body of a response with status 2xx, and when it was read.
  std::function<void(StreamId, std::string_view, std::chrono::steady_clock::time_point)> on_body;
  std::function<void(StreamId, StreamEnd)> on_end;
};

class Streams {
 public:
  Streams(ClientOptions options, StreamHandlers handlers);
  ~Streams();  ///< what is open ends without on_end
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  /// `id` is not open yet. A request that cannot be sent ends with the next turn.
  void start(StreamId id, const Request& request);
  /// Ends it without on_end; nothing for an id that is not open.
  void cancel(StreamId id);
  std::size_t open() const;

  /// Waits for at most `at_most_s` until something can be done, and does it. Returns early on a signal.
  void turn(double at_most_s);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace sextant::http
