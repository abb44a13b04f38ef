// Wire formats: a request as the HTTP request of one provider's API, its answer back. Pure functions.
//
// Adapters live in wire_chat.cpp, wire_responses.cpp, wire_anthropic.cpp, wire_gemini.cpp and
// wire_ollama.cpp, one for each format; what differs between providers of one format is data (Quirks), and
// what has been learned from refusals is applied to the finished body (Learned).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"
#include "llm/endpoint.h"
#include "llm/fault.h"
#include "llm/message.h"

namespace sextant::llm {

/// An answer, or why there is none. With a fault, `response` holds what could be read: usage, and text so
/// far.
struct Parsed {
  Response response{};
  std::optional<Fault> fault{};
};

/// The HTTP request. Its time-outs are left at their defaults.
http::Request to_wire(const Request& request, const Endpoint& endpoint, const Learned& learned, bool stream);

/// The answer in the body of a response with status 200.
Parsed from_wire(std::string_view body, const Request& request, const Endpoint& endpoint,
                 const Learned& learned);

using OnText = std::function<void(std::string_view)>;

/// Takes a streamed answer as it arrives. Unknown events, fields and comments are passed over.
class StreamReader {
 public:
  virtual ~StreamReader() = default;
  /// Text is handed to `on_text` (may be empty) as it comes.
  virtual void feed(std::string_view portion, const OnText& on_text) = 0;
  /// After the last byte. A stream that ended before the provider said so is a fault (kBroken); an error that
  /// came inside it is that fault.
  virtual Parsed finish() = 0;
};

std::unique_ptr<StreamReader> stream_reader(const Request& request, const Endpoint& endpoint,
                                            const Learned& learned);

/// Updates `learned` from a refused parameter; false when there is nothing (more) to learn from this fault,
/// so that repeating the request would be refused again. `sent` is the body of the refused request.
bool learn(const Fault& fault, std::string_view sent, const Endpoint& endpoint, Learned& learned);

/// The mode in force.
SchemaMode schema_mode(const Endpoint& endpoint, const Learned& learned);

}  // namespace sextant::llm
