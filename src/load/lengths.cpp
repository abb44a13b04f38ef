#include "load/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"
#include "base/error.h"

namespace sextant::load {
namespace {

std::int64_t whole(double value) { return static_cast<std::int64_t>(value); }

}  // namespace

std::string_view dialect_name(RangeDialect dialect) {
  return dialect == RangeDialect::kVllm ? "vllm" : "inferencex";
}

RangeDialect parse_dialect(std::string_view name, std::string_view flag) {
  if (name == "inferencex" || name == "sglang") return RangeDialect::kInferenceX;
  if (name == "vllm") return RangeDialect::kVllm;
  throw base::UserError(
      {std::string(flag)}, {},
      fmt::format("\"{}\" is no dialect: inferencex or sglang (lengths from r·L to L), or vllm (from "
                  "(1-r)·L to (1+r)·L)",
                  name));
}

double exact_ratio(RangeDialect dialect) { return dialect == RangeDialect::kVllm ? 0.0 : 1.0; }

LengthRange length_range(std::int64_t length, double ratio, RangeDialect dialect, std::string_view flag) {
  SEXTANT_CHECK_GT(length, 0);
  const bool vllm = dialect == RangeDialect::kVllm;
  if (!(ratio >= 0.0 && (vllm ? ratio < 1.0 : ratio <= 1.0))) {
    throw base::UserError(
        {std::string(flag)}, {},
        fmt::format("{:g} is outside of the dialect {}, which takes 0 to {}", ratio, dialect_name(dialect),
                    vllm ? "less than 1 and draws lengths from (1-r)·L to (1+r)·L"
                         : "1 and draws lengths from r·L to L"));
  }
  const auto exact = static_cast<double>(length);
  if (!vllm) return {std::max<std::int64_t>(1, whole(exact * ratio)), length};
  return {std::max<std::int64_t>(1, whole(std::floor(exact * (1.0 - ratio)))),
          whole(std::ceil(exact * (1.0 + ratio)))};
}

Lengths random_lengths(const LengthOptions& options, std::string_view ratio_flag, NumpyRandom& random) {
  const auto draw = [&](std::int64_t length, std::vector<std::int64_t>& drawn) {
    const LengthRange range = length_range(length, options.range_ratio, options.dialect, ratio_flag);
    for (std::int64_t i = 0; i < options.requests; ++i)
      drawn.push_back(random.integer(range.low, range.high));
  };
  Lengths lengths;
  draw(options.input_tokens, lengths.input_tokens);
  draw(options.output_tokens, lengths.output_tokens);
  return lengths;
}

}  // namespace sextant::load
