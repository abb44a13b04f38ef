// An HTTP/1.1 server: requests come as values, answers go out whole or as streams, from any thread.
//
//   Server server({.port = 8000}, [](ServerRequest request, Responder responder) {
//     responder.answer({.status = 200, .body = "hello"});
//   });
//
// - The handler runs on one of the server's own threads and must not block: it answers at once, or hands the
//   responder to whoever will.
// - A stream's unsent bytes are bounded. A client that does not read is cut off instead of filling memory.
// - A client that goes away before its answer is whole is noticed at once, and on_gone says so. Closing the
//   sending half alone counts as going away, unless the whole answer has been given by then.
// - Requests of one connection are answered in order; what a client sends ahead waits.
// - Malformed and oversized requests are answered with a 4xx and the connection is closed.
//
// What it does not speak: TLS (put a proxy before it) and HTTP/2.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace sextant::http {

struct ServerLimits {
  std::size_t header_bytes = 64u << 10;
  std::size_t body_bytes = 32u << 20;
  std::size_t connections = 20'000;
  std::size_t stream_bytes = 1u << 20;  ///< unsent bytes of one stream
  double idle_s = 75;                   ///< a kept connection without a request
  double request_s = 60;                ///< from a request's first byte to its last
  double write_s = 60;                  ///< between two portions that a client takes
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 0;  ///< 0: one that is free
  std::size_t threads = 1;
  ServerLimits limits = {};
  /// The body of an answer that the server gives by itself, and its type; by default plain text.
  std::function<std::string(int status, const std::string& message)> error_body = {};
  std::string error_type = "text/plain";
};

struct ServerRequest {
  std::string method;
  std::string path;   ///< without the query, percent-decoded
  std::string query;  ///< as it was sent
  std::vector<Header> headers;
  std::string body;
};

class Answer;

/// The way back to one client. Copies share it; any thread may call. When the last copy goes without an end,
/// the client gets status 500, or its stream is cut.
class Responder {
 public:
  explicit Responder(std::shared_ptr<Answer> answer);

  /// A whole answer. Nothing happens when the client is gone or something was answered before.
  void answer(const Response& response) const;

  /// Begins a stream: header lines now, the body in portions. Server-sent events need the header
  /// Content-Type: text/event-stream.
  void begin_stream(int status, const std::vector<Header>& headers) const;
  /// False when the client is gone or was cut off.
  bool send(std::string_view bytes) const;
  void end() const;

  /// Called once, on a thread of the server or at once, if the client goes before the end.
  void on_gone(std::function<void()> callback) const;

 private:
  struct Handle;
  std::shared_ptr<Handle> handle_;
};

using Handler = std::function<void(ServerRequest, Responder)>;

class Server {
 public:
  /// Listens. Throws base::UserError naming --host or --port when that is not possible.
  Server(ServerOptions options, Handler handler);
  /// Ends all connections.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  std::size_t connections() const;

  /// Takes no further connection, closes the idle ones and lets answers under way end, for at most
  /// `longest_s`; what is still open then is closed. Blocks.
  void drain(double longest_s);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sextant::http
