#include "server/answer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sextant::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLowestLogprob = -9999.0;  // OpenAI's stand-in for minus infinity, which JSON lacks

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

double told(double logprob) { return std::max(logprob, kLowestLogprob); }

bool is_utf8(const std::string& bytes) {
  try {
    (void)Json(bytes).dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

/// A token in the keys of /v1/completions: its text, or "bytes:\xf0\x9f" as OpenAI writes a part of a
/// character.
std::string token_key(const TextModel& model, TokenId id) {
  const std::string bytes = token_bytes(model, id);
  if (is_utf8(bytes)) return bytes;
  std::string key = "bytes:";
  for (const char c : bytes) key += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return key;
}

Json chat_token(const TextModel& model, TokenId id, double logprob) {
  const std::string bytes = token_bytes(model, id);
  Json numbers = Json::array();
  for (const char c : bytes) numbers.push_back(static_cast<unsigned char>(c));
  return {{"token", bytes}, {"logprob", told(logprob)}, {"bytes", std::move(numbers)}};
}

Json chat_logprobs(const TextModel& model, const std::vector<TokenReport>& tokens) {
  Json content = Json::array();
  for (const TokenReport& report : tokens) {
    Json entry = chat_token(model, report.token, report.logprob.value_or(0.0));
    Json& top = entry["top_logprobs"] = Json::array();
    for (const engine::Alternative& other : report.top) {
      top.push_back(chat_token(model, other.token, other.logprob));
    }
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json completion_logprobs(const TextModel& model, const std::vector<TokenReport>& tokens) {
  Json texts = Json::array();
  Json own = Json::array();
  Json tops = Json::array();
  Json offsets = Json::array();
  for (const TokenReport& report : tokens) {
    const std::string key = token_key(model, report.token);
    texts.push_back(key);
    own.push_back(report.logprob ? Json(told(*report.logprob)) : Json());
    Json top;
    if (report.logprob) {
      top = Json::object();
      for (const engine::Alternative& other : report.top) {
        top.emplace(token_key(model, other.token), told(other.logprob));
      }
      top.emplace(key, told(*report.logprob));
    }
    tops.push_back(std::move(top));
    offsets.push_back(report.text_offset);
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(own)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

Json usage_document(const Usage& usage) {
  Json document = {{"prompt_tokens", usage.prompt_tokens},
                   {"completion_tokens", usage.completion_tokens},
                   {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
                   {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
  if (usage.reasoning_tokens) {
    document["completion_tokens_details"] = {{"reasoning_tokens", *usage.reasoning_tokens}};
  }
  return document;
}

}  // namespace

std::string usage_json(const Usage& usage) { return usage_document(usage).dump(); }

std::string event_of(const std::string& json) { return "data: " + json + "\n\n"; }

AnswerWriter::AnswerWriter(const TextModel& model, AnswerHead head, const GenerationRequest& request)
    : model_(&model),
      head_(std::move(head)),
      is_chat_(request.is_chat),
      tells_logprobs_(request.logprobs >= 0),
      tells_ids_(request.return_token_ids),
      tells_usage_(request.include_usage) {
  prefix_ = fmt::format(R"(data: {{"id":{},"object":"{}","created":{},"model":{},"choices":[)",
                        text_of(head_.id), is_chat_ ? "chat.completion.chunk" : "text_completion",
                        head_.created, text_of(head_.model));
}

std::string AnswerWriter::logprobs_json(const std::vector<TokenReport>& tokens) const {
  if (!tells_logprobs_ || tokens.empty()) return "null";
  return text_of(is_chat_ ? chat_logprobs(*model_, tokens) : completion_logprobs(*model_, tokens));
}

std::string AnswerWriter::frame(std::size_t index, const std::string& body, const std::string& logprobs,
                                const std::string& finish, const std::string& more,
                                const std::string& usage) const {
  return fmt::format(R"({}{{"index":{},{},"logprobs":{},"finish_reason":{}{}}}]{}}})"
                     "\n\n",
                     prefix_, index, body, logprobs, finish, more, usage);
}

std::string AnswerWriter::first_chunk(std::size_t index) const {
  if (!is_chat_) return {};
  return frame(index, R"("delta":{"role":"assistant","content":""})", "null", "null", "",
               tells_usage_ ? R"(,"usage":null)" : "");
}

std::string AnswerWriter::chunk(std::size_t index, const Delta& delta,
                                const std::optional<Usage>& usage) const {
  std::string told_usage = tells_usage_ ? R"(,"usage":null)" : "";
  if (usage) told_usage = R"(,"usage":)" + usage_json(*usage);
  const std::string ids = tells_ids_ ? R"(,"token_ids":)" + text_of(Json(delta.token_ids)) : "";
  std::string chunks;
  if (!delta.content.empty() || !delta.reasoning.empty() || !delta.tokens.empty() ||
      !delta.token_ids.empty()) {
    std::string body;
    if (!is_chat_) {
      body = R"("text":)" + text_of(Json(delta.content));
    } else {
      std::string parts;
      if (!delta.reasoning.empty()) parts += R"("reasoning_content":)" + text_of(Json(delta.reasoning));
      if (!delta.content.empty() || parts.empty()) {
        parts += (parts.empty() ? "" : ",") + (R"("content":)" + text_of(Json(delta.content)));
      }
      body = R"("delta":{)" + parts + "}";
    }
    chunks = frame(index, body, logprobs_json(delta.tokens), "null", ids, told_usage);
  }
  if (!delta.finish.empty()) {
    chunks += frame(index, is_chat_ ? R"("delta":{})" : R"("text":"")", "null", text_of(Json(delta.finish)),
                    "", told_usage);
  }
  return chunks;
}

std::string AnswerWriter::usage_chunk(const Usage& usage) const {
  return prefix_ + "],\"usage\":" + usage_json(usage) + "}\n\n";
}

std::string AnswerWriter::whole(const std::vector<Delta>& choices,
                                const std::vector<std::vector<TokenId>>& prompt_ids,
                                const Usage& usage) const {
  Json list = Json::array();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const Delta& choice = choices[i];
    Json entry = {{"index", i}};
    if (is_chat_) {
      Json& message = entry["message"] = {{"role", "assistant"}, {"content", choice.content}};
      if (model_->thinks) {
        message["reasoning_content"] = choice.reasoning.empty() ? Json() : Json(choice.reasoning);
      }
    } else {
      entry["text"] = choice.content;
    }
    entry["logprobs"] = Json();
    if (tells_logprobs_) {
      entry["logprobs"] =
          is_chat_ ? chat_logprobs(*model_, choice.tokens) : completion_logprobs(*model_, choice.tokens);
    }
    entry["finish_reason"] = choice.finish;
    if (tells_ids_) {
      entry["token_ids"] = choice.token_ids;
      entry["prompt_token_ids"] = prompt_ids[i * prompt_ids.size() / choices.size()];
    }
    list.push_back(std::move(entry));
  }
  const Json document = {{"id", head_.id},
                         {"object", is_chat_ ? "chat.completion" : "text_completion"},
                         {"created", head_.created},
                         {"model", head_.model},
                         {"choices", std::move(list)},
                         {"usage", usage_document(usage)}};
  return text_of(document);
}

}  // namespace sextant::server
