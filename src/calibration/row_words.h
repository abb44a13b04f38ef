// The words that published tables use for precision, recomputation and schedule.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cluster/precision.h"
#include "parallel/layout.h"

namespace sextant::calibration {

struct PrecisionWords {
  cluster::Precision precision = cluster::Precision::kBf16;
  cluster::Fp8Recipe recipe = cluster::Fp8Recipe::kNone;
  bool recipe_said = false;  ///< the cell names the recipe, or none is needed
};

/// "BF16", "FP8-CS", "FP8 (float8 linear)", "FP8-MX", "NVFP4 (layers 0-29) + BF16", … Nothing when no word is
/// known.
std::optional<PrecisionWords> precision_words(std::string_view cell);

struct RecomputeWords {
  parallel::Recompute recompute;
  bool cheapest_that_fits = false;
  /// "selective" alone: torchtitan means every second layer, Megatron-LM the core attention.
  bool selective_unspecified = false;
};

/// "none", "full", "full:block:5", "selective:moe_act+layernorm", "cheapest that fits", … Nothing when a word
/// is unknown.
std::optional<RecomputeWords> recompute_words(std::string_view cell);

/// "interleaved-1F1B", "ZB (zbb)", "V-Half", … Nothing for unknown names.
std::optional<pipeline::Algorithm> schedule_words(std::string_view cell);

/// The number that follows `label` in `text` ("GA=16" for "GA="), wherever a word begins with it. Nothing
/// when absent.
std::optional<int> number_after(std::string_view text, std::string_view label);

}  // namespace sextant::calibration
