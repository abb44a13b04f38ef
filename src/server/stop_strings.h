// Text that may still turn out to be a stop string is held back; the text ends right before the first one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sextant::server {

/// Feed it the text in any portions: the result does not depend on how it was cut. Of several stop strings
/// the one that is complete first counts, of those complete at the same place the longest.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// What can be shown now; nothing more once stopped().
  std::string feed(std::string_view text);
  /// The text has ended: what was held back.
  std::string flush();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

/// The length of the longest end of `text` that is a beginning of `word`, but not all of it.
std::size_t begun(std::string_view text, std::string_view word);

}  // namespace sextant::server
