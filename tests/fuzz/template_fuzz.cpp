// Any bytes given as a chat template are refused with file and line, or render a conversation, or fail as
// templates may.
#include <cstddef>
#include <cstdint>
#include <optional>

#include "refusals.h"
#include "tokenizer/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sextant;
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  std::optional<tokenizer::ChatTemplate> chat;
  if (!fuzz::returns_or_names_the_file([&] { chat.emplace(source, "fuzz.jinja"); })) return 0;
  tokenizer::ChatInput input;
  input.messages =
      tokenizer::value_of_json(R"([{"role": "user", "content": "Hi \u00e9", "n": [1, 2.5, null]}])", true);
  try {
    const tokenizer::RenderedChat rendered = chat->render(input);
    for (const auto& range : rendered.user_text) SEXTANT_CHECK_LE(range.end, rendered.text.size());
  } catch (const tokenizer::TemplateError&) {
  }
  return 0;
}
