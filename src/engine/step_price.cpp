#include "engine/step_price.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace sextant::engine {
namespace {

constexpr batching::SequenceId kMadeUp = -1;

std::int64_t time_us(Executor& executor, std::int64_t tokens, std::int64_t vocabulary) {
  const batching::CacheSpec& cache = executor.cache();
  batching::BatchPlan plan{.kind = batching::StepKind::kPrefill};
  plan.segments = {{.id = kMadeUp, .first_position = 0, .tokens = tokens, .samples = true}};
  for (std::int64_t i = 0; i < tokens; ++i) {
    plan.token_ids.push_back(static_cast<batching::TokenId>(i % vocabulary));
  }
  std::vector<std::int32_t>& table = plan.block_tables.emplace_back();
  table.resize(static_cast<std::size_t>((tokens + cache.block_tokens - 1) / cache.block_tokens));
  std::iota(table.begin(), table.end(), 0);
  executor.begin(kMadeUp, {}, plan.token_ids);
  const auto begin = std::chrono::steady_clock::now();
  executor.run(plan);
  const auto end = std::chrono::steady_clock::now();
  executor.end(kMadeUp);
  return std::chrono::duration_cast<std::chrono::microseconds>(end - begin).count();
}

}  // namespace

batching::StepPrice measure_step_price(Executor& executor, std::int64_t most_tokens,
                                       std::int64_t vocabulary) {
  const batching::CacheSpec& cache = executor.cache();
  const std::int64_t most = std::min(most_tokens, cache.blocks * cache.block_tokens);
  batching::StepPrice price;
  for (std::int64_t tokens = 1; tokens <= most;
       tokens = tokens == most ? most + 1 : std::min(2 * tokens, most)) {
    std::int64_t us = time_us(executor, tokens, vocabulary);
    for (int again = 0; again < 2; ++again) us = std::min(us, time_us(executor, tokens, vocabulary));
    const std::int64_t before = price.points.empty() ? 0 : price.points.back().us;
    price.points.push_back({tokens, std::max(us, before)});
  }
  return price;
}

}  // namespace sextant::engine
