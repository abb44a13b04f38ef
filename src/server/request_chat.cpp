// Conversations: messages as templates want them.
//
// What is checked is what every template relies on: a role, and content that is text. Parts of content are
// joined by line feeds, as other open servers do. A missing content is null, as OpenAI's own client sends it.
// Arguments of tool calls, which the API has as JSON text, become objects, as published templates expect
// (Hugging Face's documentation of chat templates).
#include <algorithm>
#include <array>

#include "server/request_fields.h"

namespace sextant::server {
namespace {

using tokenizer::JsonField;
using tokenizer::Value;

constexpr std::array<std::string_view, 7> kRoles = {"system", "developer", "user",   "assistant",
                                                    "tool",   "function",  "ipython"};

/// The text of a list of parts.
std::string joined_parts(const JsonField& content) {
  std::string text;
  for (std::size_t i = 0; i < content.items(); ++i) {
    const JsonField part = content.item(i);
    const std::string type = part.at("type").text();
    if (type != "text") {
      part.at("type").refuse(fmt::format("parts of type '{}' are not served; only text is", type));
    }
    if (i > 0) text += "\n";
    text += part.at("text").text();
  }
  return text;
}

void read_tool_calls(const JsonField& calls, Json& into) {
  for (std::size_t i = 0; i < calls.items(); ++i) {
    const auto function = calls.item(i).find("function");
    if (!function) continue;
    const auto arguments = function->find("arguments");
    if (!arguments || !arguments->json().is_string()) continue;
    Json parsed = Json::parse(arguments->text(), nullptr, false);
    if (parsed.is_object()) into[i]["function"]["arguments"] = std::move(parsed);
  }
}

Json read_message(const JsonField& message) {
  const std::string role = message.at("role").text();
  if (std::ranges::find(kRoles, role) == kRoles.end()) {
    message.at("role").refuse(fmt::format("'{}' is none of {}", role, fmt::join(kRoles, ", ")));
  }
  Json copy = message.json();
  const auto content = message.find("content");
  const auto calls = message.find("tool_calls");
  if (content) {
    if (content->json().is_array()) {
      copy["content"] = joined_parts(*content);
    } else {
      (void)content->text();
    }
  } else {
    const bool may = role == "assistant" && ((calls && calls->items() > 0) || message.find("function_call"));
    if (!may) {
      throw base::UserError({}, message.path() + ".content",
                            "is missing or null, which only an assistant's message with tool_calls may have");
    }
    copy["content"] = nullptr;
  }
  if (calls) {
    read_tool_calls(*calls, copy["tool_calls"]);
  } else {
    copy.erase("tool_calls");  // null, as some clients send it
  }
  return copy;
}

/// Marks everything as the users' but the role, which was checked and is one of a few words: templates print
/// it into control tokens.
Value value_of_messages(const Json& messages) {
  Value value = tokenizer::value_of_json(messages.dump(), true);
  for (const Value& message : value.as_list()->items) {
    const auto dict = *message.as<std::shared_ptr<tokenizer::Dict>>();
    for (auto& [key, item] : dict->entries) {
      if (const auto* name = key.as<tokenizer::MarkedText>(); name->bytes() == "role") {
        item = Value::text(item.as<tokenizer::MarkedText>()->bytes());
      }
    }
  }
  return value;
}

void read_tools(const Fields& fields, Chat& chat) {
  const auto tools = fields.find("tools");
  const auto choice = fields.find("tool_choice");
  const bool none = choice && choice->json() == "none";
  if (choice && !none && choice->json() != "auto") {
    choice->refuse("only \"auto\" and \"none\" are served; a call of a tool cannot be forced");
  }
  if (tools && tools->items() > 0 && !none) {
    chat.input.tools = tokenizer::value_of_json(tools->json().dump(), true);
  }
  fields.ignore("parallel_tool_calls");
  for (const char* name : {"functions", "function_call"}) {
    fields.refuse_unless(
        name, [](const Json& value) { return value == "none" || value == "auto" || value == Json::array(); },
        "functions are passed as \"tools\"");
  }
}

}  // namespace

Chat read_chat(const Fields& fields) {
  const JsonField messages = fields.at("messages");
  if (messages.items() == 0) messages.refuse("must hold at least one message");
  Json list = Json::array();
  for (std::size_t i = 0; i < messages.items(); ++i) list.push_back(read_message(messages.item(i)));
  Chat chat;
  chat.input.messages = value_of_messages(list);
  for (Json& message : list) {
    if (message["content"].is_null()) message["content"] = "";
  }
  chat.messages_without_null = value_of_messages(list);
  read_tools(fields, chat);
  if (const auto documents = fields.find("documents")) {
    chat.input.documents = tokenizer::value_of_json(documents->json().dump(), true);
  }
  fields.refuse_unless(
      "modalities", [](const Json& value) { return value == Json::array({"text"}); }, "only text is served");
  fields.refuse_unless(
      "audio", [](const Json&) { return false; }, "only text is served");
  chat.add_generation_prompt = fields.flag("add_generation_prompt", true);
  fields.refuse_unless(
      "continue_final_message", [](const Json& value) { return value == false; },
      "going on with a message is not served");
  if (const auto effort = fields.find("reasoning_effort")) {
    chat.input.variables.emplace_back("reasoning_effort", Value::text(effort->text(), true));
  }
  if (const auto variables = fields.find("chat_template_kwargs")) {
    if (!variables->json().is_object()) variables->refuse("must be an object");
    for (const auto& [name, value] : variables->json().items()) {
      chat.input.variables.emplace_back(name, tokenizer::value_of_json(value.dump(), true));
    }
  }
  return chat;
}

}  // namespace sextant::server
