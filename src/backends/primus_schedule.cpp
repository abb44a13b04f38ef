// Primus's pipeline schedules: two runtimes behind two patch flags, and Megatron-LM's own when neither is
// set.
//
//   patch_zero_bubble      Sea AI Lab's runtime: zero bubble, V schedules by zero_bubble_v_schedule_mem_setup
//                          (primus/backends/megatron/core/pipeline_parallel/zerobubble/README.md)
//   patch_primus_pipeline  Primus's own runtime: pp_algorithm names the schedule
//   (…/primuspipe/pipeline_launcher.py)
#include <fmt/format.h>

#include "backends/megatron_layout.h"

namespace sextant::backends {
namespace {

using pipeline::Algorithm;

Algorithm megatron_schedule(int chunks) {
  return chunks > 1 ? Algorithm::kInterleaved : Algorithm::kOneForwardOneBackward;
}

Algorithm zero_bubble_schedule(const ResolvedKeys& keys, int chunks, int stages,
                               std::vector<std::string>& warnings) {
  if (keys.boolean("zero_bubble_v_schedule", false)) {
    const std::string memory = keys.text("zero_bubble_v_schedule_mem_setup", "half");
    if (memory == "half") return Algorithm::kVHalf;
    if (memory == "min") return Algorithm::kVMin;
    if (memory == "zb") return Algorithm::kZeroBubbleV;
    keys.refuse("zero_bubble_v_schedule_mem_setup",
                fmt::format("\"{}\" is unknown; half, min or zb", memory));
  }
  if (keys.boolean("enable_1f1b_v", false)) {
    keys.refuse("enable_1f1b_v",
                "the 1F1B-V schedule is not supported; set it to false or choose a V schedule "
                "with zero_bubble_v_schedule");
  }
  if (!keys.boolean("enable_zero_bubble", true)) return megatron_schedule(chunks);
  const std::string pending = keys.text("zero_bubble_max_pending_backward", "auto");
  if (pending == "auto") {
    warnings.emplace_back(
        "zero_bubble_max_pending_backward: auto lets Primus fit the schedule to free memory while "
        "it trains; ZB-H1, which needs no more memory than 1F1B, is projected");
    return Algorithm::kZeroBubbleH1;
  }
  const std::int64_t limit = keys.integer("zero_bubble_max_pending_backward", stages);
  return limit >= 2 * std::int64_t{stages} ? Algorithm::kZeroBubbleH2 : Algorithm::kZeroBubbleH1;
}

}  // namespace

pipeline::Algorithm schedule_from_keys(const ResolvedKeys& keys, int chunks, int stages,
                                       const KeyConventions& conventions,
                                       std::vector<std::string>& warnings) {
  if (!conventions.primus) return megatron_schedule(chunks);
  if (keys.boolean("patch_zero_bubble", false)) return zero_bubble_schedule(keys, chunks, stages, warnings);
  const std::string name = keys.text("pp_algorithm", "1f1b-interleaved");
  const std::optional<Algorithm> algorithm = pipeline::algorithm_from_name(name);
  if (!algorithm) {
    keys.refuse("pp_algorithm",
                fmt::format("\"{}\" is unknown; 1f1b, 1f1b-interleaved, zero-bubble, "
                            "zero-bubble-heuristic, zbv-formatted, v-half and v-min are known",
                            name));
  }
  if (keys.boolean("patch_primus_pipeline", false)) {
    // With one chunk the interleaved schedule is 1F1B.
    return *algorithm == Algorithm::kInterleaved ? megatron_schedule(chunks) : *algorithm;
  }
  // The preset's value stands for "nothing asked".
  if (*algorithm == Algorithm::kInterleaved || *algorithm == Algorithm::kOneForwardOneBackward) {
    return megatron_schedule(chunks);
  }
  warnings.push_back(
      fmt::format("pp_algorithm: {} is taken as asked, but Primus schedules as Megatron-LM does unless "
                  "patch_primus_pipeline is true; exports write that",
                  name));
  return *algorithm;
}

}  // namespace sextant::backends
