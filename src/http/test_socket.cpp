#include "http/test_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>

namespace sextant::http {

Listener listen_on_loopback(int backlog) {
  Listener listener{.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener.socket, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener.socket, backlog) != 0 ||
      ::getsockname(listener.socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::abort();
  }
  listener.port = ntohs(address.sin_port);
  return listener;
}

Received receive_request(int connection) {
  Received received;
  char buffer[65536];
  for (;;) {
    const std::size_t end = received.text.find("\r\n\r\n");
    if (end != std::string::npos) {
      const std::size_t length = received.text.find("Content-Length: ");
      const std::size_t body =
          length == std::string::npos ? 0 : std::strtoul(received.text.c_str() + length + 16, nullptr, 10);
      received.whole = received.text.size() >= end + 4 + body;
      if (received.whole) return received;
    }
    const ssize_t count = ::recv(connection, buffer, sizeof buffer, 0);
    if (count <= 0) return received;
    received.text.append(buffer, static_cast<std::size_t>(count));
  }
}

}  // namespace sextant::http
