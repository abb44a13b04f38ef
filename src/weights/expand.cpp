#include "weights/expand.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/error.h"

namespace sextant::weights {
namespace {

template <typename Stored>
Stored load(const std::byte* at) {
  Stored value;
  std::memcpy(&value, at, sizeof(value));  // views may begin at odd addresses
  return value;
}

// One block: `in` has block_of(dtype).bytes, `out` has block_of(dtype).elements.
using ExpandBlock = void (*)(const std::byte* in, float* out);

void expand_f32(const std::byte* in, float* out) { *out = load<float>(in); }
void expand_f16(const std::byte* in, float* out) { *out = float_from_float16(load<std::uint16_t>(in)); }
void expand_bf16(const std::byte* in, float* out) { *out = float_from_bfloat16(load<std::uint16_t>(in)); }

// ggml's dequantize_row_q8_0: value = scale * q.
void expand_q8_0(const std::byte* in, float* out) {
  const float scale = float_from_float16(load<std::uint16_t>(in));
  for (std::size_t i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(load<std::int8_t>(in + 2 + i));
}

// ggml's dequantize_row_q4_1: value = scale * q + minimum; low nibbles are elements 0 to 15, high ones 16
// to 31.
void expand_q4_1(const std::byte* in, float* out) {
  const float scale = float_from_float16(load<std::uint16_t>(in));
  const float minimum = float_from_float16(load<std::uint16_t>(in + 2));
  for (std::size_t i = 0; i < 16; ++i) {
    const unsigned pair = std::to_integer<unsigned>(in[4 + i]);
    out[i] = scale * static_cast<float>(pair & 15U) + minimum;
    out[i + 16] = scale * static_cast<float>(pair >> 4U) + minimum;
  }
}

ExpandBlock expander_of(const Tensor& tensor) {
  switch (tensor.dtype) {
    case Dtype::kF32:
      return expand_f32;
    case Dtype::kF16:
      return expand_f16;
    case Dtype::kBf16:
      return expand_bf16;
    case Dtype::kQ8_0:
      return expand_q8_0;
    case Dtype::kQ4_1:
      return expand_q4_1;
    default:
      break;
  }
  throw base::UserError({tensor.file}, tensor.name,
                        fmt::format("is stored as {}; weights of F32, F16, BF16, Q8_0 and Q4_1 are read",
                                    name_of(tensor.dtype)));
}

template <typename Stored>
void append_integers(const Tensor& tensor, std::vector<std::int64_t>& values) {
  for (std::size_t at = 0; at + sizeof(Stored) <= tensor.bytes.size(); at += sizeof(Stored)) {
    values.push_back(static_cast<std::int64_t>(load<Stored>(tensor.bytes.data() + at)));
  }
}

}  // namespace

float float_from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16U); }

std::uint16_t bfloat16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U)
    return static_cast<std::uint16_t>(bits >> 16U | 0x40U);  // NaN, quiet
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
}

float float_from_float16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = bits >> 10U & 0x1fU;
  const std::uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 0) {  // zero and subnormal: mantissa * 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 0x1f ? 0xffU : exponent + 112U;  // 112 = 127 - 15, the biases
  return std::bit_cast<float>(sign | wide << 23U | mantissa << 13U);
}

void expand_float32(const Tensor& tensor, std::int64_t first, std::span<float> out) {
  const ExpandBlock expand = expander_of(tensor);
  const Block block = block_of(tensor.dtype);
  const auto elements = static_cast<std::size_t>(block.elements);
  SEXTANT_CHECK_EQ(static_cast<std::size_t>(first) % elements, 0U);
  SEXTANT_CHECK_EQ(out.size() % elements, 0U);
  SEXTANT_CHECK_LE(first + static_cast<std::int64_t>(out.size()), tensor.elements());
  const std::byte* in = tensor.bytes.data() +
                        static_cast<std::size_t>(first) / elements * static_cast<std::size_t>(block.bytes);
  for (std::size_t at = 0; at < out.size(); at += elements, in += block.bytes) expand(in, out.data() + at);
}

std::vector<float> to_float32(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  expand_float32(tensor, 0, values);
  return values;
}

std::vector<std::uint16_t> to_bfloat16(const Tensor& tensor) {
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(tensor.elements()));
  if (tensor.dtype == Dtype::kBf16) {
    if (!bits.empty()) std::memcpy(bits.data(), tensor.bytes.data(), tensor.bytes.size());
    return bits;
  }
  const std::vector<float> values = to_float32(tensor);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = bfloat16_from_float(values[i]);
  return bits;
}

std::vector<std::int64_t> to_integers(const Tensor& tensor) {
  std::vector<std::int64_t> values;
  switch (tensor.dtype) {
    case Dtype::kU8:
      append_integers<std::uint8_t>(tensor, values);
      return values;
    case Dtype::kI8:
      append_integers<std::int8_t>(tensor, values);
      return values;
    case Dtype::kU16:
      append_integers<std::uint16_t>(tensor, values);
      return values;
    case Dtype::kI16:
      append_integers<std::int16_t>(tensor, values);
      return values;
    case Dtype::kU32:
      append_integers<std::uint32_t>(tensor, values);
      return values;
    case Dtype::kI32:
      append_integers<std::int32_t>(tensor, values);
      return values;
    case Dtype::kI64:
      append_integers<std::int64_t>(tensor, values);
      return values;
    default:
      break;
  }
  throw base::UserError({tensor.file}, tensor.name,
                        fmt::format("is stored as {}, integers were expected", name_of(tensor.dtype)));
}

}  // namespace sextant::weights
