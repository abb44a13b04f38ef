// Keys and values in blocks, and attention over them.
//
// A block holds block_tokens neighbouring positions of one sequence, for all layers of a cache; a sequence's
// block table says which block holds which positions. In a block, each key-value head has, for every 16
// positions, the keys as one panel (depth: head width, columns: positions) and the values as panels (depth:
// positions, columns: head width). Head width is padded to a multiple of 16.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/matrix.h"

namespace sextant::kernels {

/// The memory of one rank's keys and values. Which block belongs to whom is not known here.
class KeyValueCache {
 public:
  struct Shape {
    std::int64_t layers = 0;
    std::int64_t blocks = 0;
    std::int64_t block_tokens = 16;  ///< a multiple of 16
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    ElementType type = ElementType::kFloat32;
  };
  explicit KeyValueCache(const Shape& shape);

  const Shape& shape() const { return shape_; }
  static std::size_t bytes(const Shape& shape);

  /// Clears the 16 places that `position`, a multiple of 16, begins: what a block's earlier owner left there
  /// is never read. To be called before any position of them is written.
  void clear_group(std::int64_t layer, const std::int32_t* blocks, std::int64_t position);

  /// Stores keys and values [kv_heads][head_dim] of one position. Different positions may be written by
  /// different threads.
  void write(std::int64_t layer, const std::int32_t* blocks, std::int64_t position, const float* keys,
             const float* values);

  const std::byte* layer(std::int64_t layer) const;
  std::int64_t block_bytes() const;  ///< of one layer
  std::int64_t head_bytes() const;

 private:
  std::byte* group(std::int64_t layer, const std::int32_t* blocks, std::int64_t position,
                   std::int64_t head) const;

  Shape shape_;
  Buffer memory_;
};

/// Neighbouring rows of one sequence in a step.
struct AttentionRows {
  std::int64_t first_row = 0;  ///< in queries and out
  std::int64_t rows = 0;
  std::int64_t first_position = 0;
  const std::int32_t* blocks = nullptr;
};

struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t window_tokens =
      0;  ///< a row sees its own position and window_tokens - 1 before it; 0: all before
  float scale = 1.0F;
};

/// Causal attention of all rows over keys that are in the cache, their own included. `queries` and `out` are
/// [rows][stride] with heads beside each other. A row's result depends on its query and its keys alone.
void attend(Machine& machine, const KeyValueCache& cache, std::int64_t layer, const AttentionShape& shape,
            const std::vector<AttentionRows>& sequences, const float* queries, std::int64_t query_stride,
            float* out, std::int64_t out_stride);

}  // namespace sextant::kernels
