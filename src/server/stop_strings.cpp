#include "server/stop_strings.h"

#include <algorithm>
#include <utility>

namespace sextant::server {

std::size_t begun(std::string_view text, std::string_view word) {
  for (std::size_t size = std::min(text.size(), word.size() - 1); size > 0; --size) {
    if (text.ends_with(word.substr(0, size))) return size;
  }
  return 0;
}

std::string StopStrings::feed(std::string_view text) {
  if (stopped_) return {};
  if (stops_.empty()) return std::string(text);
  held_ += text;
  std::size_t begin = std::string::npos;
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) {
    const std::size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const std::size_t stop_end = at + stop.size();
    if (stop_end < end || (stop_end == end && at < begin)) {
      begin = at;
      end = stop_end;
    }
  }
  std::size_t shown = begin;
  if (begin == std::string::npos) {
    std::size_t held = 0;
    for (const std::string& stop : stops_) held = std::max(held, begun(held_, stop));
    shown = held_.size() - held;
  } else {
    stopped_ = true;
  }
  std::string released = held_.substr(0, shown);
  held_.erase(0, stopped_ ? std::string::npos : shown);
  return released;
}

std::string StopStrings::flush() { return std::exchange(held_, {}); }

}  // namespace sextant::server
