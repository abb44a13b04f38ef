// Any bytes, cut anywhere, give the same events and the same lines as the bytes in one piece. The first byte
// says where they are cut.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>

#include "http/event_stream.h"

namespace {

template <class Parser, class Message>
std::vector<Message> messages_of(std::string_view text, std::size_t portion_bytes) {
  Parser parser;
  std::vector<Message> messages;
  for (std::size_t at = 0; at < text.size(); at += portion_bytes) {
    auto portion = parser.feed(text.substr(at, portion_bytes));
    std::move(portion.begin(), portion.end(), std::back_inserter(messages));
  }
  return messages;
}

template <class Parser, class Message>
void check(std::string_view text, std::size_t portion_bytes) {
  if (messages_of<Parser, Message>(text, portion_bytes) !=
      messages_of<Parser, Message>(text, text.size() + 1))
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t portion_bytes = 1 + data[0] % 16;
  check<sextant::http::EventStreamParser, sextant::http::ServerEvent>(text, portion_bytes);
  check<sextant::http::LineSplitter, std::string>(text, portion_bytes);
  return 0;
}
