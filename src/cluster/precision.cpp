#include "cluster/precision.h"

#include <array>
#include <cstddef>
#include <string>

#include "base/text.h"

namespace sextant::cluster {
namespace {

constexpr std::array<std::string_view, kPrecisions> kNames = {"fp32",  "bf16",  "fp16", "fp8",
                                                              "mxfp8", "mxfp4", "nvfp4"};

}  // namespace

std::string_view name(Precision precision) { return kNames[static_cast<std::size_t>(precision)]; }

std::optional<Precision> precision_from_name(std::string_view text) {
  const std::string lower = base::lower_case(base::trim(text));
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (lower == kNames[i]) return static_cast<Precision>(i);
  }
  // PyTorch's names of the same formats.
  if (lower == "float32") return Precision::kFp32;
  if (lower == "bfloat16") return Precision::kBf16;
  if (lower == "float16") return Precision::kFp16;
  return std::nullopt;
}

std::string_view name(Fp8Recipe recipe) {
  switch (recipe) {
    case Fp8Recipe::kNone:
      return "none";
    case Fp8Recipe::kTensorwise:
      return "tensorwise";
    case Fp8Recipe::kDelayed:
      return "delayed";
    case Fp8Recipe::kBlockwise:
      return "blockwise";
  }
  return "none";
}

double operand_bytes(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return 4.0;
    case Precision::kBf16:
    case Precision::kFp16:
      return 2.0;
    case Precision::kFp8:
    case Precision::kMxfp8:
      return 1.0;
    case Precision::kMxfp4:
    case Precision::kNvfp4:
      return 0.5;
  }
  return 2.0;
}

bool is_low_precision(Precision precision) { return operand_bytes(precision) <= 1.0; }

}  // namespace sextant::cluster
