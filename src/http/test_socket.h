// The sockets of servers that tests are made of.
#pragma once

#include <string>

namespace sextant::http {

struct Listener {
  int socket = -1;
  int port = 0;
};

/// Listens on a free port of this machine; `backlog` connections may wait. Aborts when that cannot be.
Listener listen_on_loopback(int backlog);

/// A request with the body that Content-Length promises, or, when the other side ends, what came of it.
struct Received {
  std::string text;
  bool whole = false;
};
Received receive_request(int connection);

}  // namespace sextant::http
