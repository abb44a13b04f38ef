#include "pipeline/schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/check.h"

namespace sextant::pipeline {
namespace {

constexpr std::int64_t kMaxChunkPasses = std::int64_t{1} << 24;

/// Squeezing a building block takes time with the cube of the stages: 256 take some seconds.
constexpr int kMaxSqueezedStages = 256;

constexpr std::array kAlgorithms = {
    Algorithm::kOneForwardOneBackward,
    Algorithm::kInterleaved,
    Algorithm::kGpipe,
    Algorithm::kZeroBubbleH1,
    Algorithm::kZeroBubbleH2,
    Algorithm::kZeroBubbleV,
    Algorithm::kVHalf,
    Algorithm::kVMin,
    Algorithm::kDualPipeV,
};

constexpr std::pair<std::string_view, Algorithm> kAliases[] = {
    // Primus: `pp_algorithm` of primus_pipeline.yaml and `--pipeline-schedule-algorithm` of its projection.
    {"1f1b-interleaved", Algorithm::kInterleaved},
    {"zero-bubble", Algorithm::kZeroBubbleH1},
    {"zerobubble", Algorithm::kZeroBubbleH1},
    {"zero-bubble-heuristic", Algorithm::kZeroBubbleH1},
    {"zerobubble-heuristic", Algorithm::kZeroBubbleH1},
    {"zbv-formatted", Algorithm::kZeroBubbleV},
    {"zbv-greedy-half", Algorithm::kVHalf},
    {"zbv-greedy-min", Algorithm::kVMin},
    // Megatron-LM speaks of virtual pipeline parallelism.
    {"vpp", Algorithm::kInterleaved},
    {"interleaved-1f1b", Algorithm::kInterleaved},
    // torch.distributed.pipelining, as torchtitan names them.
    {"interleaved1f1b", Algorithm::kInterleaved},
    {"zbvzerobubble", Algorithm::kZeroBubbleV},
    {"dualpipev", Algorithm::kDualPipeV},
    // sail-sg/zero-bubble-pipeline-parallelism and its papers.
    {"zb1p", Algorithm::kZeroBubbleH1},
    {"zbh1", Algorithm::kZeroBubbleH1},
    {"zb2p", Algorithm::kZeroBubbleH2},
    {"zbh2", Algorithm::kZeroBubbleH2},
    {"zbv", Algorithm::kZeroBubbleV},
    {"vhalf", Algorithm::kVHalf},
    {"zbv-half", Algorithm::kVHalf},
    {"vmin", Algorithm::kVMin},
    {"zbv-min", Algorithm::kVMin},
};

std::string normalised(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    c = (c == '_' || c == ' ') ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

std::optional<std::string> wrong_size(const Shape& shape) {
  if (shape.stages < 1 || shape.chunks < 1 || shape.microbatches < 1 || shape.group < 0) {
    return fmt::format(
        "stages, chunks and micro-batches must be at least 1 and the group not negative, and here PP={}, "
        "V={}, "
        "M={}, N={}",
        shape.stages, shape.chunks, shape.microbatches, shape.group);
  }
  const std::int64_t virtual_stages = std::int64_t{shape.stages} * shape.chunks;
  if (virtual_stages > kMaxChunkPasses || virtual_stages * shape.microbatches > kMaxChunkPasses) {
    return fmt::format("PP·V·M must not exceed {} (a limit of this program), and here PP={}, V={}, M={}",
                       kMaxChunkPasses, shape.stages, shape.chunks, shape.microbatches);
  }
  return std::nullopt;
}

std::optional<std::string> wrong_chunks(Algorithm algorithm, const Shape& shape) {
  const int required = required_chunks(algorithm);
  if (required == 0 && shape.chunks < 2) {
    return fmt::format("{} needs 2 or more chunks per stage, and here V={}", name(algorithm), shape.chunks);
  }
  if (required > 0 && shape.chunks != required) {
    return fmt::format("{} needs exactly {} chunk{} per stage, and here V={}", name(algorithm), required,
                       required == 1 ? "" : "s", shape.chunks);
  }
  return std::nullopt;
}

std::optional<std::string> wrong_group(const Shape& shape) {
  const int stages = shape.stages;
  const int microbatches = shape.microbatches;
  const int group = group_size(shape);
  const int remainder = microbatches % group;
  if (group >= stages && group <= microbatches && (remainder == 0 || remainder >= stages))
    return std::nullopt;
  const auto numbers = fmt::format("and here PP={}, N={}, M={}", stages, group, microbatches);
  if (group < stages || group > microbatches) {
    return fmt::format("interleaved needs PP <= N <= M (micro-batch group size N), {}", numbers);
  }
  return fmt::format("interleaved needs M % N to be 0 or at least PP, {}: remainder {}", numbers, remainder);
}

}  // namespace

std::span<const Algorithm> all_algorithms() { return kAlgorithms; }

std::string_view name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kOneForwardOneBackward:
      return "1f1b";
    case Algorithm::kInterleaved:
      return "interleaved";
    case Algorithm::kGpipe:
      return "gpipe";
    case Algorithm::kZeroBubbleH1:
      return "zb-h1";
    case Algorithm::kZeroBubbleH2:
      return "zb-h2";
    case Algorithm::kZeroBubbleV:
      return "zb-v";
    case Algorithm::kVHalf:
      return "v-half";
    case Algorithm::kVMin:
      return "v-min";
    case Algorithm::kDualPipeV:
      return "dualpipe-v";
  }
  SEXTANT_CHECK(false);
  return "";
}

std::optional<Algorithm> algorithm_from_name(std::string_view name_or_alias) {
  const std::string wanted = normalised(name_or_alias);
  for (const Algorithm algorithm : kAlgorithms) {
    if (name(algorithm) == wanted) return algorithm;
  }
  for (const auto& [alias, algorithm] : kAliases) {
    if (alias == wanted) return algorithm;
  }
  return std::nullopt;
}

bool splits_weight_gradient(Algorithm algorithm) {
  return algorithm != Algorithm::kOneForwardOneBackward && algorithm != Algorithm::kInterleaved &&
         algorithm != Algorithm::kGpipe;
}

int required_chunks(Algorithm algorithm) {
  if (algorithm == Algorithm::kInterleaved) return 0;
  return is_v_shaped(algorithm) ? 2 : 1;
}

bool is_v_shaped(Algorithm algorithm) {
  return algorithm == Algorithm::kZeroBubbleV || algorithm == Algorithm::kVHalf ||
         algorithm == Algorithm::kVMin || algorithm == Algorithm::kDualPipeV;
}

int group_size(const Shape& shape) { return shape.group == 0 ? shape.stages : shape.group; }

std::optional<std::string> unschedulable(Algorithm algorithm, const Shape& shape) {
  if (auto reason = wrong_size(shape)) return reason;
  if (auto reason = wrong_chunks(algorithm, shape)) return reason;
  if (algorithm == Algorithm::kInterleaved) return wrong_group(shape);
  const bool squeezed = is_v_shaped(algorithm) && algorithm != Algorithm::kDualPipeV;
  if (squeezed && shape.stages > kMaxSqueezedStages) {
    return fmt::format("{} takes at most {} stages (a limit of this program), and here PP={}",
                       name(algorithm), kMaxSqueezedStages, shape.stages);
  }
  if (algorithm == Algorithm::kDualPipeV && shape.microbatches < 2 * shape.stages) {
    return fmt::format("dualpipe-v needs M >= 2·PP micro-batches, and here PP={}, M={}", shape.stages,
                       shape.microbatches);
  }
  return std::nullopt;
}

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::kForward:
      return "F";
    case Kind::kBackwardInput:
      return "B";
    case Kind::kBackwardWeight:
      return "W";
    case Kind::kBackward:
      return "BW";
  }
  SEXTANT_CHECK(false);
  return "";
}

int virtual_stage(Algorithm algorithm, const Shape& shape, Place place) {
  if (is_v_shaped(algorithm) && place.chunk == 1) return 2 * shape.stages - 1 - place.stage;
  return place.chunk * shape.stages + place.stage;
}

Place place_of(Algorithm algorithm, const Shape& shape, int virtual_index) {
  const int chunk = virtual_index / shape.stages;
  const int offset = virtual_index % shape.stages;
  if (is_v_shaped(algorithm) && chunk == 1) return {shape.stages - 1 - offset, 1};
  return {offset, chunk};
}

}  // namespace sextant::pipeline
