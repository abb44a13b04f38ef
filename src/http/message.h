// Requests and responses of HTTP as values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "http/secret.h"

namespace sextant::http {

struct Header {
  std::string name{};
  std::string value{};
};

/// A header whose value is `prefix` and a key: {"Authorization", "Bearer ", key}. Kept apart from the others,
/// so that these can be recorded.
struct SecretHeader {
  std::string name{};
  std::string prefix{};
  Secret value{};
};

/// How long each phase may take. The defaults suit an answer that is computed for minutes before its first
/// byte.
struct Timeouts {
  double connect_s = 10;      ///< name look-up, connection and TLS together
  double first_byte_s = 600;  ///< from sending the request to the first header line
  double silence_s = 120;     ///< between two portions of the body
  double total_s = 900;
};

struct Request {
  std::string method = "POST";
  std::string url{};
  std::vector<Header> headers{};
  std::vector<SecretHeader> secret_headers{};
  std::string body{};
  Timeouts timeouts{};
};

struct Response {
  int status = 0;
  std::vector<Header> headers{};
  std::string body{};
};

enum class FailureKind : std::uint8_t {
  kBadUrl,     ///< the URL cannot be used
  kConnect,    ///< no such host, refused, unreachable: nothing was sent
  kTls,        ///< the certificate or the handshake was not accepted: nothing was sent
  kTimeout,    ///< a phase took longer than its limit
  kBroken,     ///< the connection ended before the response did
  kTooLarge,   ///< the response exceeds the limit of the client
  kCancelled,  ///< stop was requested
};

/// Why there is no response. `message` names host and phase, never a header or the query of the URL.
struct Failure {
  FailureKind kind = FailureKind::kBroken;
  std::string message{};
  /// The request may have reached the server, which may be working on it (and charging for it).
  bool sent = false;
};

/// What a request came to: `failure` is empty when the response is whole. With a failure, `response` holds
/// what had arrived.
struct Exchange {
  Response response{};
  std::optional<Failure> failure{};
};

/// Called with each portion of the body of a response with status 2xx as it arrives; false ends the exchange
/// as cancelled. The body is also collected in the response.
using OnBody = std::function<bool(std::string_view)>;

/// How requests reach the world: a Client, or what stands in for it in tests and replays.
using Transport = std::function<Exchange(const Request&, const OnBody&, std::stop_token)>;

/// The value of the first header of this name (case does not matter); empty: none.
std::optional<std::string> find_header(const std::vector<Header>& headers, std::string_view name);

/// "https://host:8000" of a URL: what a message may name. User name, password, path and query are left out.
std::string origin(std::string_view url);

/// `text` with everything but letters, digits and "-._~" as %XX: one segment of a path.
std::string percent_encoded(std::string_view text);

}  // namespace sextant::http
