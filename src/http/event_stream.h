// Streams of small messages inside a response: server-sent events, and lines of JSON.
//
// Both readers take the body in whatever portions it arrives and give the same messages for any portions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::http {

/// No message of a stream may be longer; what exceeds it is given up with overflowed().
inline constexpr std::size_t kMaxStreamMessageBytes = 16u << 20;

struct ServerEvent {
  std::string type{};  ///< of the `event:` line; "message" without one
  std::string data{};  ///< the `data:` lines, joined by line feeds
  bool operator==(const ServerEvent&) const = default;
};

/// Splits into lines that end in CR LF, LF or CR, whichever way portions cut them. A byte order mark at the
/// very beginning is dropped. An unended last line is what rest() gives.
class LineSplitter {
 public:
  std::vector<std::string> feed(std::string_view portion);
  const std::string& rest() const { return line_; }
  bool overflowed() const { return overflowed_; }

 private:
  std::string line_;
  bool after_carriage_return_ = false;
  bool at_beginning_ = true;
  bool overflowed_ = false;
};

/// Server-sent events as the HTML standard defines them (html.spec.whatwg.org, section 9.2.6): comments and
/// unknown fields are passed over, an event without data is none, one that no empty line ends is dropped.
/// `id` and `retry` are read over: nothing here reconnects.
class EventStreamParser {
 public:
  std::vector<ServerEvent> feed(std::string_view portion);
  bool overflowed() const { return overflowed_ || lines_.overflowed(); }

 private:
  void field(std::string_view line);

  LineSplitter lines_;
  std::string type_;
  std::string data_;
  bool has_data_ = false;
  bool overflowed_ = false;
};

}  // namespace sextant::http
