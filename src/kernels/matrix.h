// Weights as kernels read them, and rows of activations times them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/buffer.h"
#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"

namespace sextant::kernels {

enum class ElementType { kFloat32, kBFloat16 };
constexpr std::int64_t bytes_of(ElementType type) { return type == ElementType::kFloat32 ? 4 : 2; }

/// A matrix [columns][depth] (as checkpoints store linear layers: one row for each output) in panels
/// (panels.h). Read-only once filled, and then safe to read from several threads.
class Matrix {
 public:
  Matrix() = default;
  Matrix(std::int64_t columns, std::int64_t depth, ElementType type);

  std::int64_t columns() const { return columns_; }
  std::int64_t depth() const { return depth_; }
  std::int64_t padded_depth() const;
  /// Columns up to whole panels: the least stride of a product's rows.
  std::int64_t padded_columns() const;
  std::int64_t panels() const { return padded_columns() / 16; }
  ElementType type() const { return type_; }
  std::size_t bytes() const { return memory_.bytes(); }
  const void* data() const { return memory_.data(); }

  /// Stores `depth` weights of one output, rounded to the type. Different columns may be set by different
  /// threads.
  void set_column(std::int64_t column, const float* weights);
  /// The weights of one output, as floats.
  void read_column(std::int64_t column, float* weights) const;

 private:
  std::int64_t columns_ = 0;
  std::int64_t depth_ = 0;
  ElementType type_ = ElementType::kFloat32;
  Buffer memory_;
};

/// What kernels run on: an instruction set, threads, and memory that calls reuse. One user at a time.
struct Machine {
  Machine(Isa isa, std::size_t threads);

  const KernelTable* kernels;
  ThreadTeam team;
  Buffer prepared;                    ///< activations in the order of the product at hand
  std::vector<Buffer> thread_memory;  ///< one for each thread
};

/// out[row][column] = x[row] . weights[column], for `rows` rows. `out_stride` is at least
/// weights.padded_columns(); whole panels are written, zeros beyond the last column. A row's result depends
/// on that row and the weights alone (docs/design/kernels.md).
void multiply(Machine& machine, const float* x, std::int64_t x_stride, std::int64_t rows,
              const Matrix& weights, float* out, std::int64_t out_stride);

/// Calls body(row) for each row, on several threads when that is worth it.
void for_each_row(Machine& machine, std::int64_t rows, std::int64_t floats_in_row,
                  const std::function<void(std::int64_t row)>& body);

}  // namespace sextant::kernels
