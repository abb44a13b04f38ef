#include "bench/streaming_server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/test_socket.h"

namespace sextant::bench {

void Served::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(connection_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void Served::begin_stream() {
  send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
}

void Served::event(const std::string& data) {
  const std::string line = "data: " + data + "\n\n";
  send(fmt::format("{:x}\r\n{}\r\n", line.size(), line));
}

void Served::end_stream() { send("0\r\n\r\n"); }

StreamingServer::StreamingServer(std::function<void(Served&)> answer) : answer_(std::move(answer)) {
  const http::Listener listener = http::listen_on_loopback(1024);
  listener_ = listener.socket;
  port_ = listener.port;
  acceptor_ = std::jthread([this] {
    for (;;) {
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      const int on = 1;
      ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ++connections_;
      const std::scoped_lock lock(mutex_);
      open_.push_back(connection);
      threads_.emplace_back([this, connection] { serve(connection); });
    }
  });
}

StreamingServer::~StreamingServer() {
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  {
    const std::scoped_lock lock(mutex_);
    for (const int connection : open_) ::shutdown(connection, SHUT_RDWR);
  }
  threads_.clear();
  for (const int connection : open_) ::close(connection);
}

void StreamingServer::serve(int connection) {
  for (http::Received request = http::receive_request(connection); request.whole;
       request = http::receive_request(connection)) {
    Served served(connection, std::move(request.text));
    answer_(served);
    if (served.close_after) break;
  }
  ::shutdown(connection, SHUT_RDWR);
}

std::string StreamingServer::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

}  // namespace sextant::bench
