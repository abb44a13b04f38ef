// Answers in OpenAI's form: whole ones, and the chunks of streams.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/choice.h"

namespace sextant::server {

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::int64_t cached_tokens = 0;  ///< of the prompts, taken from the prefix cache
  std::optional<std::int64_t> reasoning_tokens;
};

std::string usage_json(const Usage& usage);

/// What all parts of one answer carry.
struct AnswerHead {
  std::string id;
  std::int64_t created = 0;  ///< seconds since 1970
  std::string model;
};

class AnswerWriter {
 public:
  /// `model` must outlive it.
  AnswerWriter(const TextModel& model, AnswerHead head, const GenerationRequest& request);

  /// Server-sent events. The first of a choice in a chat names the role.
  std::string first_chunk(std::size_t index) const;
  std::string chunk(std::size_t index, const Delta& delta, const std::optional<Usage>& usage) const;
  std::string usage_chunk(const Usage& usage) const;

  /// The whole answer; choice i is choices[i].
  std::string whole(const std::vector<Delta>& choices, const std::vector<std::vector<TokenId>>& prompt_ids,
                    const Usage& usage) const;

 private:
  std::string frame(std::size_t index, const std::string& body, const std::string& logprobs,
                    const std::string& finish, const std::string& more, const std::string& usage) const;
  std::string logprobs_json(const std::vector<TokenReport>& tokens) const;

  const TextModel* model_;
  AnswerHead head_;
  bool is_chat_;
  bool tells_logprobs_;
  bool tells_ids_;
  bool tells_usage_;
  std::string prefix_;
};

/// "data: …" and the empty line that ends an event.
std::string event_of(const std::string& json);

}  // namespace sextant::server
