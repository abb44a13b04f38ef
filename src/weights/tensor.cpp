#include "weights/tensor.h"

#include <fmt/format.h>

#include "base/error.h"

namespace sextant::weights {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 62;

}  // namespace

std::int64_t Tensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dimension : shape) product *= dimension;
  return product;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::int64_t size_bytes(Dtype dtype, std::span<const std::int64_t> shape, const std::string& file,
                        const std::string& name) {
  std::int64_t elements = 1;
  bool empty = false;
  for (const std::int64_t dimension : shape) {
    if (dimension < 0) {
      throw base::UserError({file}, name,
                            fmt::format("shape {} has a negative dimension", shape_text(shape)));
    }
    if (dimension == 0) {
      empty = true;
      continue;
    }
    if (elements > kMost / dimension) {
      throw base::UserError(
          {file}, name,
          fmt::format("shape {} has more elements than any file holds: the header is damaged",
                      shape_text(shape)));
    }
    elements *= dimension;
  }
  if (empty) return 0;
  const Block block = block_of(dtype);
  const std::int64_t innermost = shape.empty() ? 1 : shape.back();
  if (innermost % block.elements != 0) {
    throw base::UserError(
        {file}, name,
        fmt::format("shape {}: {} stores {} elements together, and {} is no multiple of that",
                    shape_text(shape), name_of(dtype), block.elements, innermost));
  }
  if (elements / block.elements > kMost / block.bytes) {
    throw base::UserError({file}, name,
                          fmt::format("shape {} of {} is larger than any file: the header is damaged",
                                      shape_text(shape), name_of(dtype)));
  }
  return elements / block.elements * block.bytes;
}

}  // namespace sextant::weights
