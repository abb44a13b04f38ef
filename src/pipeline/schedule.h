// Pipeline schedules: in which order each stage of a pipeline works through its micro-batches.
//
// The room `pipeline` turns numbers into numbers and knows no model: a schedule is an algorithm and a shape;
// out comes one list of steps per stage (this header), the times at which they run (replay.h) and what stays
// alive meanwhile (live.h). check.h derives the same claims a second time, for tests.
//
// Vocabulary. A *stage* is one pipeline rank. It holds one or more *chunks* of consecutive layers. Following
// the data through all chunks of all stages counts *virtual stages*. A micro-batch passes each virtual stage
// forward (F), then backwards in reverse. A backward is one step (BW) or two: the input gradient (B), which
// the previous virtual stage waits for, and the weight gradient (W), which nobody waits for. Stages, chunks
// and micro-batches count from 0.
//
// Everything here is a pure function; any thread may call it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::pipeline {

enum class Algorithm : std::uint8_t {
  kOneForwardOneBackward,  ///< PipeDream-Flush (Narayanan et al. 2021), Megatron-LM without virtual stages
  kInterleaved,            ///< Megatron-LM's schedule with virtual stages (Narayanan et al. 2021)
  kGpipe,                  ///< all forwards, then all backwards (Huang et al. 2019)
  kZeroBubbleH1,           ///< split backward, memory of 1F1B (Qi et al. 2024, ZB-H1)
  kZeroBubbleH2,           ///< split backward, twice the memory (Qi et al. 2024, ZB-H2)
  kZeroBubbleV,            ///< split backward, two chunks in a V (Qi et al. 2024, ZB-V)
  kVHalf,                  ///< V-shaped at half the memory of 1F1B (Qi et al. 2024, controllable memory)
  kVMin,                   ///< V-shaped at a third of the memory
  kDualPipeV,              ///< DeepSeek's DualPipe folded into a V
};

/// All algorithms, in the order above.
std::span<const Algorithm> all_algorithms();

/// "1f1b", "interleaved", "gpipe", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "dualpipe-v".
std::string_view name(Algorithm algorithm);

/// The algorithm called so here or, as an alias, in Primus (`pp_algorithm` and the projection's schedule
/// names), Megatron-LM, torchtitan or the zero-bubble project; case, '_' and ' ' for '-' do not matter.
/// Nothing for unknown names and for those that choose by themselves ("auto", "seaailab-ilp").
std::optional<Algorithm> algorithm_from_name(std::string_view name_or_alias);

/// Whether B and W are separate steps (for at least some micro-batches).
bool splits_weight_gradient(Algorithm algorithm);

/// Chunks a stage must hold: exactly 1, exactly 2, or 0 for "2 or more".
int required_chunks(Algorithm algorithm);

/// Whether chunk 1 runs back from the last stage to the first, so that the model ends where it began.
bool is_v_shaped(Algorithm algorithm);

/// How many stages (P), chunks per stage (V) and micro-batches (M) there are.
struct Shape {
  int stages = 1;
  int chunks = 1;
  int microbatches = 1;
  int group = 0;  ///< N, micro-batches a stage runs through one chunk before the next (interleaved); 0: P

  bool operator==(const Shape&) const = default;
};

/// N: `group`, or the number of stages when it is 0.
int group_size(const Shape& shape);

/// Why the algorithm cannot run this shape, with the rule and its numbers; nothing when it can.
///   - P, V, M at least 1, V as `required_chunks` says, at most 2^24 chunk passes (a limit of ours);
///   - interleaved: PP <= N <= M, and M % N is 0 or at least PP (Megatron-LM,
///     core/pipeline_parallel/schedules.py, forward_backward_pipelining_with_interleaving);
///   - dualpipe-v: M >= 2·PP (dualpipev.py asserts it);
///   - zb-v, v-half, v-min: at most 256 stages (a limit of ours);
///   - fewer micro-batches than stages are legal for all others.
/// Rules of backends (virtual stages need PP > 1 …) are not pipeline's business.
std::optional<std::string> unschedulable(Algorithm algorithm, const Shape& shape);

/// Why the algorithm cannot keep within `max_live`, with the least limits that it can keep; nothing when it
/// can. `max_live` holds the most micro-batches alive (F to the end of the last backward part) for each
/// stage; empty: no limit. Requires a schedulable shape.
///   - zb-h2, zb-v, v-half and v-min arrange themselves within limits below their own peak, at the price of
///     bubbles; zb-h2 down to 1, the V-shaped ones down to V-Min's memory;
///   - the others have one order, which keeps the limits or not.
std::optional<std::string> over_limit(Algorithm algorithm, const Shape& shape, std::span<const int> max_live);

/// What a step does. `kBackward` is input and weight gradient in one.
enum class Kind : std::uint8_t { kForward, kBackwardInput, kBackwardWeight, kBackward };

/// "F", "B", "W", "BW".
std::string_view name(Kind kind);

/// One step of a stage.
struct Step {
  int chunk = 0;
  int microbatch = 0;
  Kind kind = Kind::kForward;

  bool operator==(const Step&) const = default;
};

/// For each stage, the order of its steps, as frameworks launch it: built for equal stages and F = B = W.
/// Requires a schedulable shape, and limits that are not `over_limit`. Orders built for other durations:
/// tailored.h.
std::vector<std::vector<Step>> generate(Algorithm algorithm, const Shape& shape,
                                        std::span<const int> max_live = {});

/// The same for one stage, without limits.
std::vector<Step> generate_stage(Algorithm algorithm, const Shape& shape, int stage);

/// Where a virtual stage lives.
struct Place {
  int stage = 0;
  int chunk = 0;

  bool operator==(const Place&) const = default;
};

/// Virtual stage of chunk `chunk` on stage `stage`: chunk·P + stage, or 2P-1-stage for chunk 1 of a V.
int virtual_stage(Algorithm algorithm, const Shape& shape, Place place);

/// The inverse. `virtual_index` lies in [0, P·V).
Place place_of(Algorithm algorithm, const Shape& shape, int virtual_index);

}  // namespace sextant::pipeline
