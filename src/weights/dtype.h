// What the elements of a stored tensor are.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sextant::weights {

/// Element types of safetensors (https://github.com/huggingface/safetensors) and the block formats of GGUF
/// that are read here. Multi-byte elements are little-endian.
enum class Dtype : std::uint8_t {
  kBool,
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kU64,
  kI64,
  kF16,
  kBf16,
  kF32,
  kF64,
  kF8E4m3,  ///< 1 sign, 4 exponent, 3 mantissa bits; no infinities
  kF8E5m2,
  kF8E8m0,  ///< a power of two: scales of block formats
  kF4,      ///< two e2m1 elements a byte, the first in the low bits
  kQ8_0,    ///< GGUF: 32 elements in 34 bytes: an F16 scale, 32 signed bytes
  kQ4_1,    ///< GGUF: 32 elements in 20 bytes: F16 scale and minimum, 32 nibbles
};

/// "F32", "BF16", "F8_E4M3": the spelling of safetensors; "Q8_0" for GGUF's.
std::string_view name_of(Dtype dtype);

/// The type that a safetensors header spells so, or nothing.
std::optional<Dtype> safetensors_dtype(std::string_view name);

/// Elements that are stored together, and the bytes that they take: 1 and the element's size, 2 and 1 for F4,
/// 32 and 34 or 20 for the block formats. The innermost dimension is a multiple of `elements`.
struct Block {
  int elements = 1;
  int bytes = 0;
};
Block block_of(Dtype dtype);

}  // namespace sextant::weights
