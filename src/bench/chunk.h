// One message of a streamed answer: what of it counts for measuring.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sextant::bench {

/// The message that ends a stream.
inline constexpr std::string_view kDone = "[DONE]";

struct Chunk {
  bool valid = false;        ///< a JSON object
  bool has_choices = false;  ///< what counts as a chunk of the answer, whether it has text or not
  bool finished = false;     ///< a choice has a finish_reason
  std::string text{};        ///< of the first choice: `text`, or `delta`'s content and reasoning
  std::optional<std::int64_t> prompt_tokens{};  ///< of its usage
  std::optional<std::int64_t> completion_tokens{};
  bool has_error = false;
  std::string error{};  ///< the server's message
};

/// Reads a chunk of /v1/completions or /v1/chat/completions without building its document: clients of a
/// thousand streams spend most of their time here.
Chunk read_chunk(std::string_view json);

}  // namespace sextant::bench
