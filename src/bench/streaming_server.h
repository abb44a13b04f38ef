// A server for tests: every request is answered by a function that the test gives, each connection in a
// thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sextant::bench {

/// One request and the way to answer it.
class Served {
 public:
  Served(int connection, std::string text) : text(std::move(text)), connection_(connection) {}

  std::string text;          ///< head and body
  bool close_after = false;  ///< the connection ends with this answer

  void send(std::string_view bytes);
  /// Status line and headers of a stream in chunked coding, one event of it, and its end.
  void begin_stream();
  void event(const std::string& data);
  void end_stream();

 private:
  int connection_;
};

class StreamingServer {
 public:
  explicit StreamingServer(std::function<void(Served&)> answer);
  ~StreamingServer();
  StreamingServer(const StreamingServer&) = delete;
  StreamingServer& operator=(const StreamingServer&) = delete;

  std::string url() const;
  int connections() const { return connections_.load(); }

 private:
  void serve(int connection);

  std::function<void(Served&)> answer_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> connections_{0};
  std::mutex mutex_;
  std::vector<int> open_;
  std::vector<std::jthread> threads_;
  std::jthread acceptor_;
};

}  // namespace sextant::bench
