#include "calibration/row_words.h"

#include <cctype>
#include <charconv>
#include <utility>

#include "base/text.h"

namespace sextant::calibration {
namespace {

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool any_of(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (holds(text, part)) return true;
  }
  return false;
}

cluster::Fp8Recipe fp8_recipe(std::string_view words) {
  using enum cluster::Fp8Recipe;
  if (holds(words, "delayed")) return kDelayed;
  if (any_of(words, {"block", "subchannel", "rowwise"})) return kBlockwise;
  if (any_of(words, {"tensorwise", "current", "-cs"})) return kTensorwise;
  return kNone;
}

/// Modules of --recompute-modules, and the names that papers give them.
constexpr std::pair<std::string_view, std::uint32_t> kModules[] = {
    {"core_attn", parallel::kCoreAttention},
    {"moe_act", parallel::kMoeActivation},
    {"layernorm", parallel::kLayerNorm},
    {"rmsnorm", parallel::kLayerNorm},
    {"mla_up_proj", parallel::kMlaUpProjection},
    {"mlp", parallel::kMlp},
    {"moe", parallel::kMoe},
    {"shared_experts", parallel::kSharedExperts}};

/// Modules in "core_attn layernorm" or "moe_act+layernorm"; 0 when one is unknown.
std::uint32_t modules_of(std::string words) {
  for (char& c : words) {
    if (c == '+' || c == ',') c = ' ';
  }
  std::uint32_t modules = 0;
  for (const std::string& word : base::split(words, ' ')) {
    if (word.empty()) continue;
    std::uint32_t module = 0;
    for (const auto& [name, bit] : kModules) {
      if (name == word) module = bit;
    }
    if (module == 0) return 0;
    modules |= module;
  }
  return modules;
}

std::optional<RecomputeWords> full_words(const std::string& words) {
  RecomputeWords result;
  parallel::Recompute& r = result.recompute;
  r.granularity = parallel::RecomputeGranularity::kFull;
  r.method = holds(words, "block") ? parallel::RecomputeMethod::kBlock : parallel::RecomputeMethod::kUniform;
  r.layers = 1;
  const std::size_t last_colon = words.rfind(':');
  if (last_colon == std::string::npos || words.ends_with("uniform")) return result;
  const char* end = words.data() + words.size();
  if (std::from_chars(words.data() + last_colon + 1, end, r.layers).ptr != end) return std::nullopt;
  return result;
}

}  // namespace

std::optional<PrecisionWords> precision_words(std::string_view cell) {
  using enum cluster::Precision;
  const std::string words = base::lower_case(cell);
  if (words.empty()) return PrecisionWords{kBf16, cluster::Fp8Recipe::kNone, true};
  if (holds(words, "mxfp4")) return PrecisionWords{kMxfp4, cluster::Fp8Recipe::kNone, true};
  if (holds(words, "nvfp4")) return PrecisionWords{kNvfp4, cluster::Fp8Recipe::kNone, true};
  if (any_of(words, {"mxfp8", "fp8-mx"})) return PrecisionWords{kMxfp8, cluster::Fp8Recipe::kNone, true};
  if (words.starts_with("fp8")) {
    const cluster::Fp8Recipe recipe = fp8_recipe(words);
    return PrecisionWords{kFp8, recipe, recipe != cluster::Fp8Recipe::kNone};
  }
  if (words.starts_with("fp16")) return PrecisionWords{kFp16, cluster::Fp8Recipe::kNone, true};
  if (holds(words, "bf16")) return PrecisionWords{kBf16, cluster::Fp8Recipe::kNone, true};
  if (words.starts_with("fp32")) return PrecisionWords{kFp32, cluster::Fp8Recipe::kNone, true};
  return std::nullopt;
}

std::optional<RecomputeWords> recompute_words(std::string_view cell) {
  const std::string words = base::lower_case(base::trim(cell));
  RecomputeWords result;
  if (words.empty() || words == "none") return result;
  if (words == "cheapest that fits") {
    result.cheapest_that_fits = true;
    return result;
  }
  // MaxText's "minimal" policies keep every product's result: nothing that takes time runs again.
  if (words.starts_with("minimal")) return result;
  if (words.starts_with("full")) return full_words(words);
  if (!words.starts_with("selective")) return std::nullopt;
  const std::size_t colon = words.find(':');
  if (colon == std::string::npos || words.substr(colon + 1) == "per-op") {
    result.selective_unspecified = true;
    return result;
  }
  result.recompute.granularity = parallel::RecomputeGranularity::kSelective;
  result.recompute.modules = modules_of(words.substr(colon + 1));
  if (result.recompute.modules == 0) return std::nullopt;
  return result;
}

std::optional<pipeline::Algorithm> schedule_words(std::string_view cell) {
  const std::string words = base::lower_case(base::trim(cell));
  if (words.starts_with("zb (")) return pipeline::Algorithm::kZeroBubbleH1;
  if (words.starts_with("zbv")) return pipeline::Algorithm::kZeroBubbleV;
  if (words.starts_with("interleaved") && !holds(words, "zero")) return pipeline::Algorithm::kInterleaved;
  return pipeline::algorithm_from_name(words);
}

std::optional<int> number_after(std::string_view text, std::string_view label) {
  for (std::size_t at = text.find(label); at != std::string_view::npos; at = text.find(label, at + 1)) {
    const bool inside_word = at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0 ||
                                        text[at - 1] == '_' || text[at - 1] == '-');
    if (inside_word) continue;
    const char* begin = text.data() + at + label.size();
    int value = 0;
    if (std::from_chars(begin, text.data() + text.size(), value).ec == std::errc()) return value;
  }
  return std::nullopt;
}

}  // namespace sextant::calibration
