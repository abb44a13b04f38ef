#include "load/timeline.h"

#include <algorithm>

#include "base/check.h"

namespace sextant::load {

TokenCount token_count_source(const Timeline& timeline) {
  if (timeline.usage_output_tokens) return TokenCount::kUsage;
  return timeline.retokenised_output_tokens ? TokenCount::kRetokenised : TokenCount::kChunks;
}

std::int64_t output_tokens(const Timeline& timeline) {
  switch (token_count_source(timeline)) {
    case TokenCount::kUsage:
      return *timeline.usage_output_tokens;
    case TokenCount::kRetokenised:
      return *timeline.retokenised_output_tokens;
    case TokenCount::kChunks:
      break;
  }
  return static_cast<std::int64_t>(timeline.chunk_s.size());
}

double ttft_s(const Timeline& timeline) {
  SEXTANT_CHECK(!timeline.chunk_s.empty());
  return timeline.chunk_s.front() - timeline.sent_s;
}

double e2el_s(const Timeline& timeline) {
  SEXTANT_CHECK(!timeline.chunk_s.empty());
  return timeline.chunk_s.back() - timeline.sent_s;
}

std::optional<double> tpot_s(const Timeline& timeline) {
  const std::int64_t tokens = output_tokens(timeline);
  if (tokens <= 1) return std::nullopt;
  return (e2el_s(timeline) - ttft_s(timeline)) / static_cast<double>(tokens - 1);
}

std::vector<std::int64_t> chunk_tokens(const Timeline& timeline) {
  const auto chunks = static_cast<std::int64_t>(timeline.chunk_s.size());
  const std::int64_t tokens = output_tokens(timeline);
  const bool told = timeline.chunk_end_tokens.size() == timeline.chunk_s.size() &&
                    std::ranges::is_sorted(timeline.chunk_end_tokens) &&
                    (chunks == 0 || timeline.chunk_end_tokens.back() == tokens);
  std::vector<std::int64_t> each;
  std::int64_t before = 0;
  for (std::int64_t k = 1; k <= chunks; ++k) {
    const std::int64_t until =
        told ? timeline.chunk_end_tokens[static_cast<std::size_t>(k - 1)] : tokens * k / chunks;
    each.push_back(until - before);
    before = until;
  }
  return each;
}

}  // namespace sextant::load
