#include "server/reasoning.h"

#include <utility>

#include "server/stop_strings.h"

namespace sextant::server {
namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";
constexpr std::string_view kSpace = " \t\r\n";

}  // namespace

Parted ReasoningSplitter::feed(std::string_view text) {
  held_ += text;
  Parted parted;
  advance(false, parted);
  return parted;
}

Parted ReasoningSplitter::flush() {
  Parted parted;
  advance(true, parted);
  return parted;
}

void ReasoningSplitter::advance(bool ended, Parted& parted) {
  if (phase_ == Phase::kBeginning && !begin(ended)) return;
  if (phase_ == Phase::kThinking && !think(ended, parted)) return;
  if (!text_begun_) held_.erase(0, std::min(held_.find_first_not_of(kSpace), held_.size()));
  text_begun_ = text_begun_ || !held_.empty();
  parted.content = std::exchange(held_, {});
}

/// Whether it is known if the answer begins with the tag.
bool ReasoningSplitter::begin(bool ended) {
  const std::size_t at = held_.find_first_not_of(kSpace);
  const std::string_view text =
      at == std::string::npos ? std::string_view() : std::string_view(held_).substr(at);
  if (text.starts_with(kOpen)) {
    held_.erase(0, at + kOpen.size());
    phase_ = Phase::kThinking;
    return true;
  }
  if (!ended && kOpen.starts_with(text)) return false;
  phase_ = Phase::kContent;
  text_begun_ = true;  // without the tag the text stays as it is
  return true;
}

/// Whether the tag has closed.
bool ReasoningSplitter::think(bool ended, Parted& parted) {
  const std::size_t close = held_.find(kClose);
  const bool closed = close != std::string::npos;
  const std::size_t shown = closed ? close : held_.size() - (ended ? 0 : begun(held_, kClose));
  std::string text = spaces_ + held_.substr(0, shown);
  held_.erase(0, closed ? close + kClose.size() : shown);
  if (!text_begun_) text.erase(0, std::min(text.find_first_not_of(kSpace), text.size()));
  text_begun_ = text_begun_ || !text.empty();
  const std::size_t last = text.find_last_not_of(kSpace);
  const std::size_t kept = last == std::string::npos ? 0 : last + 1;
  spaces_ = text.substr(kept);
  parted.reasoning = text.substr(0, kept);
  if (!closed) return ended;
  phase_ = Phase::kContent;
  text_begun_ = false;
  return true;
}

}  // namespace sextant::server
