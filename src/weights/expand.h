// Stored elements as numbers to compute with.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weights/tensor.h"

namespace sextant::weights {

/// Writes elements [first, first + out.size()) of `tensor` as float32. Exact for F32, F16, BF16 and the 8-bit
/// types; block formats (Q8_0, Q4_1) are multiplied out. `first` and the count must be whole blocks (32
/// elements). Throws base::UserError naming the tensor for types that are no numbers of a model (F64,
/// integers, F4, F8).
void expand_float32(const Tensor& tensor, std::int64_t first, std::span<float> out);

/// The whole tensor as float32.
std::vector<float> to_float32(const Tensor& tensor);

/// The whole tensor as bfloat16 bit patterns: a copy for BF16, rounded to nearest even for the others.
std::vector<std::uint16_t> to_bfloat16(const Tensor& tensor);

/// An integer tensor (I32, I64, U8, …) as 64-bit integers. Throws base::UserError naming it for other types.
std::vector<std::int64_t> to_integers(const Tensor& tensor);

/// Bit patterns and values. Rounding to nearest even; NaN stays NaN.
float float_from_bfloat16(std::uint16_t bits);
std::uint16_t bfloat16_from_float(float value);
float float_from_float16(std::uint16_t bits);

}  // namespace sextant::weights
