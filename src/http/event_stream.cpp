#include "http/event_stream.h"

#include <algorithm>
#include <utility>

namespace sextant::http {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

std::vector<std::string> LineSplitter::feed(std::string_view portion) {
  std::vector<std::string> lines;
  const auto end_line = [&] {
    if (at_beginning_ && line_.starts_with(kByteOrderMark)) line_.erase(0, kByteOrderMark.size());
    at_beginning_ = false;
    lines.push_back(std::exchange(line_, {}));
  };
  while (!portion.empty()) {
    const bool second_of_pair = std::exchange(after_carriage_return_, false) && portion.front() == '\n';
    if (second_of_pair) {
      portion.remove_prefix(1);
      continue;
    }
    const std::size_t length = std::min(portion.find_first_of("\r\n"), portion.size());
    const std::size_t room = kMaxStreamMessageBytes - line_.size();
    line_.append(portion.substr(0, std::min(length, room)));
    if (length > room) overflowed_ = true;
    portion.remove_prefix(length);
    if (portion.empty()) break;
    after_carriage_return_ = portion.front() == '\r';
    portion.remove_prefix(1);
    end_line();
  }
  return lines;
}

void EventStreamParser::field(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == 0) return;  // a comment, such as ": keep-alive"
  const std::string_view name = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "event") type_ = value;
  if (name != "data") return;
  if (data_.size() + value.size() > kMaxStreamMessageBytes) {
    overflowed_ = true;
    return;
  }
  if (has_data_) data_ += '\n';
  data_ += value;
  has_data_ = true;
}

std::vector<ServerEvent> EventStreamParser::feed(std::string_view portion) {
  std::vector<ServerEvent> events;
  for (const std::string& line : lines_.feed(portion)) {
    if (!line.empty()) {
      field(line);
      continue;
    }
    if (has_data_) events.push_back({type_.empty() ? "message" : type_, std::move(data_)});
    type_.clear();
    data_.clear();
    has_data_ = false;
  }
  return events;
}

}  // namespace sextant::http
