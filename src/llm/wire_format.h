// What every adapter implements, and what they share. For the wire_*.cpp files only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "http/event_stream.h"
#include "llm/json.h"
#include "llm/wire.h"

namespace sextant::llm {

/// The body, and the path below the base URL.
struct WireBody {
  Json body{};
  std::string path{};
};

// One trio for each format. A stream collects into one document of the form that the parse function reads,
// wherever the format allows it, so that streamed and whole answers are read by the same code.
WireBody chat_body(const Request&, const Endpoint&, bool stream);
Parsed parse_chat(const Json& body, const Endpoint&);
std::unique_ptr<StreamReader> chat_stream(const Endpoint&);

WireBody responses_body(const Request&, const Endpoint&, bool stream);
Parsed parse_responses(const Json& body);
std::unique_ptr<StreamReader> responses_stream();

WireBody anthropic_body(const Request&, const Endpoint&, bool stream);
Parsed parse_anthropic(const Json& body);
std::unique_ptr<StreamReader> anthropic_stream();

WireBody gemini_body(const Request&, const Endpoint&, bool stream);
Parsed parse_gemini(const Json& body);
std::unique_ptr<StreamReader> gemini_stream();

WireBody ollama_body(const Request&, const Endpoint&, bool stream);
Parsed parse_ollama(const Json& body);
std::unique_ptr<StreamReader> ollama_stream();

/// A tool call from whatever stands for its arguments: a string of JSON, an object, "", null. Anything that
/// is no object becomes a call with a fault.
ToolCall tool_call(std::string id, std::string name, const Json& arguments);

/// The calls under "tool_calls" of a message, in the form {id, function: {name, arguments}}.
void add_function_calls(const Json& message, std::vector<ToolCall>& calls);

/// Calls without an id get one, and equal ids are made different.
void complete_ids(std::vector<ToolCall>& calls);

/// The schema or other JSON text of a request, which its author guarantees to be JSON.
Json own_json(const std::string& text);

Fault bad_reply(const std::string& what);
Fault cut_stream();
Finish finish_of(std::string_view text, const std::map<std::string_view, Finish>& known);

/// Reads server-sent events, stops at the first error, and leaves the rest to the format.
class EventReader : public StreamReader {
 public:
  void feed(std::string_view portion, const OnText& on_text) override;

 protected:
  virtual void take(const std::string& type, const Json& data, const OnText& on_text) = 0;
  std::optional<Fault> fault_{};
  bool done_marker_ = false;  ///< "[DONE]" has come

 private:
  http::EventStreamParser parser_;
};

}  // namespace sextant::llm
