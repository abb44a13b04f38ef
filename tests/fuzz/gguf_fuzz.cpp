// Any bytes given to read_gguf yield tensors inside the bytes, or a UserError that names the file.
#include <cstddef>
#include <cstdint>
#include <span>

#include "refusals.h"
#include "weights/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  sextant::weights::GgufFile gguf;
  sextant::fuzz::returns_or_names_the_file([&] { gguf = sextant::weights::read_gguf(bytes, "fuzz.gguf"); });
  std::size_t total = 0;
  for (const auto& tensor : gguf.tensors) {
    total += tensor.bytes.size();
    SEXTANT_CHECK(tensor.bytes.empty() || tensor.bytes.data() + tensor.bytes.size() <= bytes.data() + size);
  }
  SEXTANT_CHECK_LE(total, size);
  return 0;
}
