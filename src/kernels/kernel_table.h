// The kernels of one instruction set, as functions to be called through a table.
//
// Kernels see plain memory, run on the caller's thread and keep no state. What spreads them over threads is
// in multiply.h, attention.h and rows.h; callers outside this room use those.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace sextant::kernels {

/// Activations into the order that multiply() reads.
struct PrepareTask {
  const float* x;  ///< [rows][x_stride]
  std::int64_t x_stride;
  std::int64_t rows;
  std::int64_t depth;
  std::int64_t padded_depth;  ///< of the weights; what exceeds `depth` is filled with zeros
  void* prepared;
};

struct MultiplyTask {
  const void* prepared;
  std::int64_t rows;
  std::int64_t depth;   ///< of the weights, padded
  const void* weights;  ///< panels (panels.h)
  float* out;           ///< [rows][out_stride]; whole panels are written
  std::int64_t out_stride;
};

struct MultiplyKernels {
  std::int64_t tile_rows;  ///< rows that prepare() takes at once
  std::int64_t (*prepared_bytes)(std::int64_t rows, std::int64_t padded_depth);
  void (*prepare)(const PrepareTask&, std::int64_t tile);
  void (*multiply)(const MultiplyTask&, std::int64_t first_panel, std::int64_t last_panel);
  /// Its instruction over and over, in registers (limits.h); writes 16 floats.
  void (*multiply_adds)(std::int64_t steps, float* sink);
  std::int64_t operations_a_step;
};

/// Some neighbouring rows of one sequence against one key-value head (attention.h has the arrangement of keys
/// and values).
struct AttendTask {
  const float* queries;  ///< [rows][query_stride], the group's heads beside each other
  std::int64_t query_stride;
  float* out;  ///< arranged as queries
  std::int64_t out_stride;
  std::int64_t rows;
  std::int64_t heads;  ///< that share the key-value head
  std::int64_t head_dim;
  std::int64_t first_position;  ///< of the first row
  std::int64_t window_tokens;   ///< 0: all keys
  float scale;
  bool bfloat16;
  const std::byte* memory;    ///< first block of the layer, at this key-value head
  std::int64_t block_stride;  ///< bytes from one block to the next
  std::int64_t block_tokens;
  const std::int32_t* blocks;  ///< of the sequence
  float* scratch;              ///< attend_scratch_floats()
};

struct KernelTable {
  Isa isa;
  MultiplyKernels float32;
  MultiplyKernels bfloat16;
  void (*attend)(const AttendTask&);
  /// out = x / rms(x) * weight
  void (*rms_norm)(const float* x, const float* weight, std::int64_t count, float epsilon, float* out);
  /// out = gate / (1 + exp(-gate)) * up
  void (*swiglu)(const float* gate, const float* up, std::int64_t count, float* out);
  /// out += x
  void (*add)(const float* x, std::int64_t count, float* out);
  /// Turns the pairs (i, i + half) of one head.
  void (*rotate)(const float* cosines, const float* sines, std::int64_t half, float* head);
};

/// REQUIRES: is_supported(isa).
const KernelTable& kernel_table(Isa isa);

}  // namespace sextant::kernels
