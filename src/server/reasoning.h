// The answer of a model that thinks in tags, as reasoning and content: <think> … </think> and then the rest.
#pragma once

#include <string>
#include <string_view>

namespace sextant::server {

struct Parted {
  std::string reasoning;
  std::string content;
};

/// Text in any portions; what could be the beginning of a tag is held back. Only a <think> at the very
/// beginning opens. White space between the tags and the texts is dropped.
class ReasoningSplitter {
 public:
  /// `begins_thinking`: the prompt has opened the tag.
  explicit ReasoningSplitter(bool begins_thinking)
      : phase_(begins_thinking ? Phase::kThinking : Phase::kBeginning) {}

  Parted feed(std::string_view text);
  Parted flush();
  bool thinking() const { return phase_ == Phase::kThinking; }

 private:
  enum class Phase { kBeginning, kThinking, kContent };
  void advance(bool ended, Parted& parted);
  bool begin(bool ended);
  bool think(bool ended, Parted& parted);

  Phase phase_;
  std::string held_;
  bool text_begun_ = false;
  std::string spaces_;  ///< of the reasoning, dropped if the tag comes next
};

}  // namespace sextant::server
