// Any bytes given to read_tokenizer_json yield a tokenizer that encodes and decodes, or a UserError that
// names the file.
#include <cstddef>
#include <cstdint>

#include "refusals.h"
#include "tokenizer/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sextant;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  tokenizer::TokenizerParts parts;
  const bool read =
      fuzz::returns_or_names_the_file([&] { parts = tokenizer::read_tokenizer_json(text, "fuzz.json"); });
  if (!read) return 0;
  const tokenizer::Tokenizer tokenizer(std::move(parts));
  for (const char* sample : {"", " a  b\n", "it's 1234 \xC3\xA9\xE6\x97\xA5 <s>x</s>", "\xFF\xE6\x97"}) {
    const auto ids = tokenizer.encode(sample, {true, tokenizer::Match::kAll, {}});
    for (const auto id : ids) SEXTANT_CHECK(id >= 0 && id < tokenizer.end_id());
    tokenizer.decode(ids, true);
    tokenizer.ranges_of(ids, sample);
  }
  return 0;
}
