// The text side of one sequence: tokens in, what a client may see out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/messages.h"
#include "server/reasoning.h"
#include "server/stop_strings.h"
#include "server/text_model.h"

namespace sextant::server {

/// A token with its log-probability and those of the best alternatives.
struct TokenReport {
  TokenId token = 0;
  std::optional<double> logprob;  ///< none for the first token of a prompt
  std::vector<engine::Alternative> top;
  std::size_t text_offset = 0;  ///< characters of the answer before it
};

/// What a token, or the end, has brought.
struct Delta {
  std::string content;
  std::string reasoning;
  std::vector<TokenReport> tokens;  ///< when log-probabilities are told
  std::vector<TokenId> token_ids;   ///< when ids are returned
  std::string finish;               ///< "stop" or "length" when the choice is over
  bool empty() const { return content.empty() && reasoning.empty() && finish.empty(); }
  void append(Delta other);
};

class Choice {
 public:
  /// `model` and `request` must outlive it. `characters_before`: of the text that echo shows first.
  Choice(const TextModel& model, const GenerationRequest& request, bool begins_thinking,
         std::size_t characters_before);

  /// REQUIRES: not over, the event is no fault. What can be shown now; tokens whose text is held back are
  /// reported with the text that follows.
  Delta push(const engine::TokenEvent& event);

  bool over() const { return over_; }
  /// A stop string was found: the engine has not been told yet.
  bool stopped_by_text() const { return stops_.stopped(); }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t reasoning_tokens() const { return reasoning_tokens_; }

 private:
  std::string decoded(TokenId id);
  Delta finished(std::string reason, std::string text);
  Delta shown(const std::string& text);

  const TextModel* model_;
  const GenerationRequest* request_;
  std::optional<tokenizer::StreamDecoder> decoder_;
  StopStrings stops_;
  std::optional<ReasoningSplitter> reasoning_;
  Delta waiting_;  ///< tokens whose text is held back
  std::size_t characters_;
  std::int64_t tokens_ = 0;
  std::int64_t reasoning_tokens_ = 0;
  bool over_ = false;
};

/// UTF-8 characters of a text.
std::size_t characters_of(std::string_view text);

}  // namespace sextant::server
