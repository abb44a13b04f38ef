#include "http/scripted_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "http/test_socket.h"

namespace sextant::http {

std::string answer(const std::string& body, const std::string& status, const std::string& headers) {
  return "HTTP/1.1 " + status + "\r\n" + headers + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

ScriptedServer::ScriptedServer(std::vector<Script> scripts) : scripts_(std::move(scripts)) {
  const Listener listener = listen_on_loopback(16);
  listener_ = listener.socket;
  port_ = listener.port;
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
      std::string request = receive_request(connection).text;
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
