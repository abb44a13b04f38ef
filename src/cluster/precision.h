// Number formats of matrix multiplication.
#pragma once

#include <optional>
#include <string_view>

namespace sextant::cluster {

enum class Precision { kFp32, kBf16, kFp16, kFp8, kMxfp8, kMxfp4, kNvfp4 };
inline constexpr int kPrecisions = 7;

/// How FP8 scales are chosen; changes quantisation traffic and which copies are kept.
enum class Fp8Recipe { kNone, kTensorwise, kDelayed, kBlockwise };

std::string_view name(Precision precision);  ///< "bf16", "fp8", …
std::optional<Precision> precision_from_name(std::string_view text);
std::string_view name(Fp8Recipe recipe);
/// Bytes of one element as a matrix operand (FP4: 0.5, without scales).
double operand_bytes(Precision precision);
bool is_low_precision(Precision precision);  ///< fp8 and below

}  // namespace sextant::cluster
