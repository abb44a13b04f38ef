#include "load/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace sextant::load {
namespace {

double per_second(double count, double duration_s) { return duration_s > 0 ? count / duration_s : 0.0; }

/// The gaps of one answer: one for each chunk after the first; and one for each token that came in these,
/// where a chunk that brought none lengthens the next one's gap.
void add_gaps(const Timeline& timeline, std::vector<double>& chunk_gaps, std::vector<double>& token_gaps) {
  const std::vector<std::int64_t> tokens = chunk_tokens(timeline);
  double waited_s = 0;
  for (std::size_t i = 1; i < timeline.chunk_s.size(); ++i) {
    const double gap_s = timeline.chunk_s[i] - timeline.chunk_s[i - 1];
    chunk_gaps.push_back(gap_s);
    waited_s += gap_s;
    if (tokens[i] <= 0) continue;
    token_gaps.insert(token_gaps.end(), static_cast<std::size_t>(tokens[i]),
                      waited_s / static_cast<double>(tokens[i]));
    waited_s = 0;
  }
}

/// The run is cut into ⌈duration⌉ equal parts. One of equal parts is at least the average, whatever the
/// arrivals, which a sliding second is not.
double peak_throughput(std::span<const Timeline> timelines, double begin_s, double duration_s) {
  if (duration_s <= 0) return 0;
  const double parts = std::ceil(duration_s);
  const double part_s = duration_s / parts;
  std::vector<std::int64_t> tokens_of(static_cast<std::size_t>(parts));
  for (const Timeline& timeline : timelines) {
    if (!timeline.ok()) continue;
    const std::vector<std::int64_t> tokens = chunk_tokens(timeline);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const double part = std::clamp((timeline.chunk_s[i] - begin_s) / part_s, 0.0, parts - 1);
      tokens_of[static_cast<std::size_t>(part)] += tokens[i];
    }
  }
  return static_cast<double>(*std::ranges::max_element(tokens_of)) / part_s;
}

}  // namespace

double percentile(std::span<const double> sorted, double percent) {
  SEXTANT_CHECK(!sorted.empty());
  const double place = percent / 100.0 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = place - static_cast<double>(below);
  const double step = sorted[above] - sorted[below];
  // NumPy interpolates from the nearer end, which keeps the result monotone in rounding.
  return share < 0.5 ? sorted[below] + step * share : sorted[above] - step * (1.0 - share);
}

Summary summarise(std::vector<double> values, std::span<const double> percents) {
  Summary summary;
  summary.count = static_cast<std::int64_t>(values.size());
  if (values.empty()) return summary;
  std::ranges::sort(values);
  const auto count = static_cast<double>(values.size());
  summary.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - summary.mean) * (value - summary.mean);
  summary.std = std::sqrt(squares / count);
  summary.median = percentile(values, 50);
  for (const double percent : percents) summary.percentiles.push_back(percentile(values, percent));
  return summary;
}

bool is_good(const Timeline& timeline, const Objectives& objectives) {
  return timeline.ok() && (!objectives.ttft_s || ttft_s(timeline) <= *objectives.ttft_s) &&
         (!objectives.tpot_s || tpot_s(timeline).value_or(0.0) <= *objectives.tpot_s) &&
         (!objectives.e2el_s || e2el_s(timeline) <= *objectives.e2el_s);
}

Metrics judge(std::span<const Timeline> timelines, double begin_s, double end_s, const Objectives& objectives,
              std::span<const double> percents) {
  Metrics metrics;
  metrics.duration_s = end_s - begin_s;
  std::vector<double> ttfts, tpots, itls, token_itls, e2els, queues;
  std::int64_t good = 0;
  for (const Timeline& timeline : timelines) {
    if (!timeline.ok()) {
      ++metrics.failed;
      continue;
    }
    ++metrics.completed;
    metrics.input_tokens += timeline.input_tokens;
    metrics.output_tokens += output_tokens(timeline);
    const TokenCount source = token_count_source(timeline);
    metrics.counted_by_usage += source == TokenCount::kUsage ? 1 : 0;
    metrics.counted_by_tokenizer += source == TokenCount::kRetokenised ? 1 : 0;
    metrics.counted_by_chunks += source == TokenCount::kChunks ? 1 : 0;
    good += is_good(timeline, objectives) ? 1 : 0;
    ttfts.push_back(ttft_s(timeline));
    if (const auto tpot = tpot_s(timeline)) tpots.push_back(*tpot);
    e2els.push_back(e2el_s(timeline));
    queues.push_back(timeline.sent_s - timeline.due_s);
    add_gaps(timeline, itls, token_itls);
  }
  const double duration_s = metrics.duration_s;
  const auto input = static_cast<double>(metrics.input_tokens);
  const auto output = static_cast<double>(metrics.output_tokens);
  metrics.request_throughput = per_second(static_cast<double>(metrics.completed), duration_s);
  metrics.input_throughput = per_second(input, duration_s);
  metrics.output_throughput = per_second(output, duration_s);
  metrics.total_throughput = per_second(input + output, duration_s);
  metrics.peak_output_throughput =  // not below the average by rounding either
      std::max(metrics.output_throughput, peak_throughput(timelines, begin_s, duration_s));
  if (objectives.any()) metrics.request_goodput = per_second(static_cast<double>(good), duration_s);
  metrics.concurrency = per_second(std::accumulate(e2els.begin(), e2els.end(), 0.0), duration_s);
  metrics.ttft = summarise(std::move(ttfts), percents);
  metrics.tpot = summarise(std::move(tpots), percents);
  metrics.itl = summarise(std::move(itls), percents);
  metrics.token_itl = summarise(std::move(token_itls), percents);
  metrics.e2el = summarise(std::move(e2els), percents);
  metrics.queue = summarise(std::move(queues), percents);
  return metrics;
}

}  // namespace sextant::load
