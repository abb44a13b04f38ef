// A text that must never be shown: an API key.
//
// It cannot be printed, formatted, compared or converted by accident; reveal() is the one way to its bytes
// and is called where a request leaves the program, and where a list of keys for redaction is made.
#pragma once

#include <fmt/core.h>

#include <ostream>
#include <string>
#include <utility>

namespace sextant::http {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}

  bool empty() const { return text_.empty(); }
  const std::string& reveal() const { return text_; }

 private:
  std::string text_;
};

std::ostream& operator<<(std::ostream&, const Secret&) = delete;

}  // namespace sextant::http

template <>
struct fmt::formatter<sextant::http::Secret> {
  formatter() = delete;
};
