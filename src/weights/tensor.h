// One stored tensor as a view: its name, what it holds, and where its bytes are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weights/dtype.h"

namespace sextant::weights {

/// A view into a mapped file; valid as long as the WeightFiles (or the bytes) that it came from. `bytes` are
/// the elements in row-major order, the last dimension innermost, and may begin at any address: copy elements
/// out (expand.h) or check the alignment before reading them in place.
struct Tensor {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;  ///< empty for a single value
  std::span<const std::byte> bytes;
  std::string file;  ///< for messages

  std::int64_t elements() const;  ///< product of the shape; 1 for a single value
};

/// "[4096, 11008]".
std::string shape_text(std::span<const std::int64_t> shape);

/// Bytes of a tensor of that type and shape. Throws base::UserError naming `file` and `name` for a negative
/// dimension, a product beyond 2^62 elements or bytes, and an innermost dimension that is no whole number of
/// blocks.
std::int64_t size_bytes(Dtype dtype, std::span<const std::int64_t> shape, const std::string& file,
                        const std::string& name);

}  // namespace sextant::weights
