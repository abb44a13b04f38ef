#include "bench/streaming_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

namespace sextant::bench {
namespace {

/// The next request on the connection; empty: there is none.
std::string read_request(int connection) {
  std::string text;
  char buffer[65536];
  for (;;) {
    const std::size_t end = text.find("\r\n\r\n");
    if (end != std::string::npos) {
      const std::size_t length = text.find("Content-Length: ");
      const std::size_t body =
          length == std::string::npos ? 0 : std::strtoul(text.c_str() + length + 16, nullptr, 10);
      if (text.size() >= end + 4 + body) return text;
    }
    const ssize_t count = ::recv(connection, buffer, sizeof buffer, 0);
    if (count <= 0) return "";
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

}  // namespace

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
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 1024) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::abort();
  }
  port_ = ntohs(address.sin_port);
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
  for (std::string text = read_request(connection); !text.empty(); text = read_request(connection)) {
    Served served(connection, std::move(text));
    answer_(served);
    if (served.close_after) break;
  }
  ::shutdown(connection, SHUT_RDWR);
}

std::string StreamingServer::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

}  // namespace sextant::bench
