// A server for tests that does exactly what it is told: each connection follows one script.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace sextant::http {

struct ReadRequest {};  ///< headers, and the body that Content-Length promises
struct Send {
  std::string bytes;
};
struct Pause {
  std::chrono::milliseconds time;
};
struct Reset {};  ///< ends the connection with RST instead of FIN
using Act = std::variant<ReadRequest, Send, Pause, Reset>;
using Script = std::vector<Act>;

/// "HTTP/1.1 200 OK" with this body and its length, and further header lines, each ended by CR LF.
std::string answer(const std::string& body, const std::string& status = "200 OK",
                   const std::string& headers = "");

class ScriptedServer {
 public:
  /// Connection n follows scripts[n]; when they are used up, connections are refused.
  explicit ScriptedServer(std::vector<Script> scripts);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::string url(const std::string& path = "/") const;
  std::vector<std::string> requests() const;

 private:
  void follow(int connection, const Script& script);

  int listener_ = -1;
  int port_ = 0;
  std::vector<Script> scripts_;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::jthread thread_;
};

}  // namespace sextant::http
