// Any text: what a small tokenizer makes of it is the same in a stream and as a whole, and without matching
// no byte of it becomes a control token.
#include <cstddef>
#include <cstdint>

#include "refusals.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/unicode.h"

namespace {

constexpr const char* kTokenizer = R"({
  "added_tokens": [{"id": 300, "content": "<s>", "special": true, "normalized": false, "lstrip": true},
                   {"id": 301, "content": "<s><s>", "special": true, "normalized": false, "single_word": true},
                   {"id": 302, "content": "AB", "special": false, "normalized": true, "rstrip": true}],
  "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]},
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
  "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "abab": 3, "<": 4, "s": 5, ">": 6, "Ġ": 7, "Ã": 8, "©": 9,
            "Ã©": 10, "Ġa": 11},
            "merges": ["Ã ©", "a b", "ab ab", "Ġ a"]}})";

const sextant::tokenizer::Tokenizer& tokenizer() {
  static const sextant::tokenizer::Tokenizer made(
      sextant::tokenizer::read_tokenizer_json(kTokenizer, "fuzz"));
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sextant::tokenizer;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Match match : {Match::kAll, Match::kNotSpecial, Match::kNone}) {
    const auto ids = tokenizer().encode(text, {false, match, {}});
    if (match == Match::kNone) {
      for (const TokenId id : ids) SEXTANT_CHECK(id < 300);
    }
    StreamDecoder stream(tokenizer().token_bytes(), false);
    std::string streamed;
    for (const TokenId id : ids) {
      const std::string delta = stream.push(id);
      SEXTANT_CHECK(is_valid_utf8(delta));
      streamed += delta;
    }
    streamed += stream.flush();
    if (match == Match::kNone) SEXTANT_CHECK(streamed == tokenizer().decode(ids, false));
  }
  const ByteRange all[] = {{0, size}};
  for (const TokenId id : tokenizer().encode(text, {false, Match::kAll, all})) SEXTANT_CHECK(id < 300);
  return 0;
}
