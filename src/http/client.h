// An HTTP client: one call, one exchange, over libcurl.
//
//   Client client;
//   Exchange exchange = client.send({.method = "GET", .url = "https://example.org/"});
//   if (exchange.failure) ...
//
// - TLS certificates are always verified, against the system's authorities or those of `authorities_file`.
// There
//   is no way to turn this off.
// - Proxies are taken from the customary environment variables (https_proxy, http_proxy, all_proxy,
// no_proxy).
// - Redirects are not followed: a key must not travel to a host that nobody named. Only http and https are
// spoken.
// - Time-outs apply to each phase (Timeouts). A requested stop ends the exchange within milliseconds.
// - Connections are kept and used again. A kept connection that the server has closed meanwhile is noticed,
// and
//   where nothing of the request was answered libcurl opens a new one.
//
// Calls from several threads go on side by side.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "http/message.h"

namespace sextant::http {

struct ClientOptions {
  std::string authorities_file{};  ///< PEM file of certificate authorities; empty: the system's
  std::string user_agent = "sextant";
  std::size_t max_body_bytes = 64u << 20;
};

class Client {
 public:
  explicit Client(ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Exchange send(const Request& request, const OnBody& on_body = {}, std::stop_token stop = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A transport that shares a new Client.
Transport client_transport(ClientOptions options = {});

}  // namespace sextant::http
