// Any bytes given to parse_json yield a document that keeps its promises, or a UserError that says where.
#include <cstddef>
#include <cstdint>

#include "promises.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  sextant::config::Node document;
  const bool parsed = sextant::fuzz::returns_or_says_where(
      [&] { document = sextant::config::parse_json(text, "fuzz.json"); });
  if (parsed) sextant::fuzz::check_document(std::move(document));
  return 0;
}
