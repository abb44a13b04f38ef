#include "http/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

namespace sextant::http {
namespace {

std::string read_request(int connection) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const std::size_t end = text.find("\r\n\r\n");
    if (end != std::string::npos) {
      const std::size_t length = text.find("Content-Length: ");
      const std::size_t body =
          length == std::string::npos ? 0 : std::strtoul(text.c_str() + length + 16, nullptr, 10);
      if (text.size() >= end + 4 + body) return text;
    }
    const ssize_t count = ::recv(connection, buffer, sizeof buffer, 0);
    if (count <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

}  // namespace

std::string answer(const std::string& body, const std::string& status, const std::string& headers) {
  return "HTTP/1.1 " + status + "\r\n" + headers + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

ScriptedServer::ScriptedServer(std::vector<Script> scripts) : scripts_(std::move(scripts)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this] {
    for (const Script& script : scripts_) {
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      follow(connection, script);
      ::close(connection);
    }
    ::shutdown(listener_, SHUT_RDWR);
  });
}

ScriptedServer::~ScriptedServer() {
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
}

void ScriptedServer::follow(int connection, const Script& script) {
  for (const Act& act : script) {
    if (std::holds_alternative<ReadRequest>(act)) {
      std::string request = read_request(connection);
      const std::scoped_lock lock(mutex_);
      requests_.push_back(std::move(request));
    } else if (const auto* send = std::get_if<Send>(&act)) {
      (void)::send(connection, send->bytes.data(), send->bytes.size(), MSG_NOSIGNAL);
    } else if (const auto* pause = std::get_if<Pause>(&act)) {
      std::this_thread::sleep_for(pause->time);
    } else {
      const linger at_once{1, 0};
      ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
  }
}

std::string ScriptedServer::url(const std::string& path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + path;
}

std::vector<std::string> ScriptedServer::requests() const {
  const std::scoped_lock lock(mutex_);
  return requests_;
}

}  // namespace sextant::http
