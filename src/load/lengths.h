// How long prompts and answers of a random workload are: two ways of reading one "range ratio".
//
// | dialect    | lengths for L and ratio r     | exact at | clients                     |
// |------------|-------------------------------|----------|-----------------------------|
// | inferencex | ⌊L·r⌋ … L                     | r = 1    | InferenceX, ATOM, SGLang    |
// | vllm       | ⌊L·(1−r)⌋ … ⌈L·(1+r)⌉         | r = 0    | vLLM                        |
//
// Both ends are included, all lengths are equally likely, none is below 1. The same ratio means different
// loads, so results name the dialect. InferenceX's published fixed-length runs use 0.8 in its own dialect:
// their mean is about 0.9·L.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "load/numpy_random.h"

namespace sextant::load {

enum class RangeDialect : std::uint8_t { kInferenceX, kVllm };

std::string_view dialect_name(RangeDialect dialect);
/// inferencex, or sglang for the same; vllm. Throws base::UserError naming `flag`.
RangeDialect parse_dialect(std::string_view name, std::string_view flag);

/// The ratio at which every length is exactly L.
double exact_ratio(RangeDialect dialect);

struct LengthRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

/// Throws base::UserError naming `flag` for a ratio outside of the dialect's (inferencex: 0…1, vllm: 0 up to
/// but without 1).
LengthRange length_range(std::int64_t length, double ratio, RangeDialect dialect, std::string_view flag);

struct LengthOptions {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  double range_ratio = 1.0;
  RangeDialect dialect = RangeDialect::kInferenceX;
  std::int64_t requests = 0;
};

struct Lengths {
  std::vector<std::int64_t> input_tokens{};
  std::vector<std::int64_t> output_tokens{};
};

/// All input lengths, then all output lengths: InferenceX's order of drawing.
Lengths random_lengths(const LengthOptions& options, std::string_view ratio_flag, NumpyRandom& random);

}  // namespace sextant::load
