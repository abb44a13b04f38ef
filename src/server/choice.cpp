#include "server/choice.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sextant::server {

std::size_t characters_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

void Delta::append(Delta other) {
  content += other.content;
  reasoning += other.reasoning;
  std::ranges::move(other.tokens, std::back_inserter(tokens));
  token_ids.insert(token_ids.end(), other.token_ids.begin(), other.token_ids.end());
  if (finish.empty()) finish = other.finish;
}

Choice::Choice(const TextModel& model, const GenerationRequest& request, bool begins_thinking,
               std::size_t characters_before)
    : model_(&model), request_(&request), stops_(request.stop), characters_(characters_before) {
  if (model.tokenizer) decoder_.emplace(model.tokenizer->token_bytes(), request.skip_special_tokens);
  if (request.is_chat && model.thinks) reasoning_.emplace(begins_thinking);
}

Delta Choice::push(const engine::TokenEvent& event) {
  const bool ends = event.finish == engine::Finish::kStop;
  std::string text;
  if (event.has_token) {
    ++tokens_;
    if (reasoning_ && reasoning_->thinking()) ++reasoning_tokens_;
    if (request_->return_token_ids) waiting_.token_ids.push_back(event.token);
    if (request_->logprobs >= 0 && !event.logprobs.empty()) {
      const engine::TokenLogprob& own = event.logprobs.front();
      waiting_.tokens.push_back(
          {.token = event.token, .logprob = own.chosen.logprob, .top = own.top, .text_offset = characters_});
    }
    if (!ends) text = decoded(event.token);  // the id that ends a text is no part of it
    characters_ += characters_of(text);
  }
  text = stops_.feed(text);
  if (stops_.stopped()) return finished("stop", text);
  if (event.finish == engine::Finish::kNo) return shown(text);
  if (decoder_) text += stops_.feed(decoder_->flush());
  if (stops_.stopped()) return finished("stop", text);
  text += stops_.flush();
  return finished(ends ? "stop" : "length", text);
}

std::string Choice::decoded(TokenId id) { return decoder_ ? decoder_->push(id) : token_bytes(*model_, id); }

Delta Choice::shown(const std::string& text) {
  Delta delta;
  if (reasoning_) {
    Parted parted = reasoning_->feed(text);
    delta.content = std::move(parted.content);
    delta.reasoning = std::move(parted.reasoning);
  } else {
    delta.content = text;
  }
  if (delta.empty()) return {};
  delta.append(std::exchange(waiting_, {}));
  return delta;
}

Delta Choice::finished(std::string reason, std::string text) {
  over_ = true;
  Delta delta = shown(text);
  if (reasoning_) {
    Parted rest = reasoning_->flush();
    delta.content += rest.content;
    delta.reasoning += rest.reasoning;
  }
  delta.append(std::exchange(waiting_, {}));
  delta.finish = std::move(reason);
  return delta;
}

}  // namespace sextant::server
