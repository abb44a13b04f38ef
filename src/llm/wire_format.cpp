#include "llm/wire_format.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/text.h"

namespace sextant::llm {

std::string text_of_content(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (!content.is_array()) return text;
  for (const Json& part : content) {
    if (part.is_string()) text += part.get<std::string>();
    const std::string type = text_at(part, "type");
    if (type.empty() || type == "text" || type == "output_text") text += text_at(part, "text");
  }
  return text;
}

namespace {

/// A string that holds a string that holds an object is unwrapped once.
Json unwrapped(const std::string& text) {
  const Json once = parse_or_discarded(text);
  if (!once.is_string()) return once;
  const Json twice = parse_or_discarded(once.get<std::string>());
  return twice.is_object() ? twice : once;
}

}  // namespace

ToolCall tool_call(std::string id, std::string name, const Json& arguments) {
  ToolCall call{.id = std::move(id), .name = std::move(name)};
  if (arguments.is_null()) return call;
  if (arguments.is_string() && base::trim(arguments.get<std::string>()).empty()) return call;
  const Json object = arguments.is_string() ? unwrapped(arguments.get<std::string>()) : arguments;
  if (object.is_object()) {
    call.arguments = dump(object);
  } else if (object.is_null()) {  // the text "null"
    return call;
  } else {
    call.arguments = arguments.is_string() ? arguments.get<std::string>() : dump(arguments);
    call.fault = object.is_discarded() ? "the arguments are not valid JSON; call again with a JSON object"
                                       : "the arguments are no JSON object; call again with one";
  }
  return call;
}

void add_function_calls(const Json& message, std::vector<ToolCall>& calls) {
  const Json& listed = at(message, "tool_calls");
  if (!listed.is_array()) return;
  for (const Json& call : listed) {
    const Json& function = at(call, "function");
    calls.push_back(tool_call(text_at(call, "id"), text_at(function, "name"), at(function, "arguments")));
  }
}

void complete_ids(std::vector<ToolCall>& calls) {
  std::set<std::string> taken;
  for (const ToolCall& call : calls) taken.insert(call.id);
  std::set<std::string> seen;
  int next = 1;
  for (ToolCall& call : calls) {
    if (!call.id.empty() && seen.insert(call.id).second) continue;
    do {
      call.id = fmt::format("call_{}", next++);
    } while (taken.contains(call.id));
    seen.insert(call.id);
    taken.insert(call.id);
  }
}

Json own_json(const std::string& text) {
  Json json = parse_or_discarded(text);
  SEXTANT_CHECK(!json.is_discarded());
  return json;
}

Fault bad_reply(const std::string& what) {
  return {.kind = FaultKind::kBadReply,
          .message = to_text(FaultKind::kBadReply) + ": " + what,
          .retryable = true};
}

Fault cut_stream() {
  return {.kind = FaultKind::kBroken,
          .message = to_text(FaultKind::kBroken) + ": the stream ended before the answer did",
          .retryable = true};
}

Finish finish_of(std::string_view text, const std::map<std::string_view, Finish>& known) {
  const auto found = known.find(text);
  return found == known.end() ? Finish::kOther : found->second;
}

void EventReader::feed(std::string_view portion, const OnText& on_text) {
  for (const http::ServerEvent& event : parser_.feed(portion)) {
    if (fault_ || done_marker_) return;
    if (base::trim(event.data) == "[DONE]") {
      done_marker_ = true;
      return;
    }
    const Json data = parse_or_discarded(event.data);
    if (data.is_discarded()) {
      fault_ = bad_reply("a stream event that is not JSON");
      return;
    }
    take(event.type, data, on_text);
  }
  if (parser_.overflowed()) fault_ = bad_reply("a stream event without end");
}

}  // namespace sextant::llm
