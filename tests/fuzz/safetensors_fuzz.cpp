// Any bytes given to read_safetensors yield tensors that tile the data, or a UserError that names the file.
#include <cstddef>
#include <cstdint>
#include <span>

#include "refusals.h"
#include "weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  std::vector<sextant::weights::Tensor> tensors;
  const bool read = sextant::fuzz::returns_or_names_the_file(
      [&] { tensors = sextant::weights::read_safetensors(bytes, "fuzz.safetensors"); });
  std::size_t total = 0;
  unsigned sum = 0;
  for (const auto& tensor : tensors) {
    total += tensor.bytes.size();
    for (const std::byte byte : tensor.bytes) sum += std::to_integer<unsigned>(byte);
  }
  SEXTANT_CHECK_LE(total, size);
  return read && sum == 0xffffffff ? 1 : 0;
}
