#include "engine/cpu_executor.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace sextant::engine {
namespace {

kernels::KeyValueCache::Shape cache_shape(const ServedModel& model, const CpuOptions& options) {
  const model::Attention& attention = model.architecture.classes.front().attention;
  return {.layers = model.architecture.layers(),
          .blocks = options.cache.blocks,
          .block_tokens = options.cache.block_tokens,
          .kv_heads = attention.kv_heads,
          .head_dim = attention.head_dim,
          .type = options.type};
}

/// Positions further back than this are read by no layer; 0: some layer reads all.
std::int64_t window_of_all_layers(const model::Model& architecture) {
  std::int64_t window = 0;
  for (const model::LayerClass& each : architecture.classes) {
    if (each.attention.window_tokens == 0) return 0;
    window = std::max(window, each.attention.window_tokens);
  }
  return window;
}

}  // namespace

CpuExecutor::CpuExecutor(ServedModel model, const TensorSource& source, const CpuOptions& options)
    : model_(std::make_unique<ServedModel>(std::move(model))),
      options_(options),
      machine_(std::make_unique<kernels::Machine>(options.isa, options.threads)),
      decoder_(std::make_unique<DenseDecoder>(
          *model_, load_dense_weights(*model_, source, options.type, *machine_), *machine_)),
      cache_(std::make_unique<kernels::KeyValueCache>(cache_shape(*model_, options))) {
  options_.cache.window_tokens = window_of_all_layers(model_->architecture);
}

std::size_t CpuExecutor::cache_bytes(const ServedModel& model, const CpuOptions& options) {
  return kernels::KeyValueCache::bytes(cache_shape(model, options));
}

void CpuExecutor::begin(batching::SequenceId id, const kernels::SamplingParameters& sampling,
                        std::span<const batching::TokenId> prompt) {
  Sequence sequence{.sampling = sampling, .counts = {}};
  for (const batching::TokenId token : prompt) ++sequence.counts.prompt[token];
  sequences_.insert_or_assign(id, std::move(sequence));
}

void CpuExecutor::end(batching::SequenceId id) { sequences_.erase(id); }

bool CpuExecutor::tells_every(const batching::Segment& segment) const {
  return every_logits && (!wants_every_logits || wants_every_logits(segment.id));
}

StepRows CpuExecutor::rows_of(const batching::BatchPlan& plan) const {
  StepRows rows;
  rows.token_ids = plan.token_ids;
  for (std::size_t s = 0; s < plan.segments.size(); ++s) {
    const batching::Segment& segment = plan.segments[s];
    const auto first_row = static_cast<std::int64_t>(rows.positions.size());
    rows.sequences.push_back({.first_row = first_row,
                              .rows = segment.tokens,
                              .first_position = segment.first_position,
                              .blocks = plan.block_tables[s].data()});
    for (std::int64_t i = 0; i < segment.tokens; ++i) {
      rows.positions.push_back(segment.first_position + i);
      const bool sampled = segment.samples && i + 1 == segment.tokens;
      if (sampled || tells_every(segment)) rows.output_rows.push_back(first_row + i);
    }
  }
  SEXTANT_CHECK_EQ(rows.token_ids.size(), rows.positions.size());
  return rows;
}

batching::Outcome CpuExecutor::draw(const batching::Segment& segment, float* logits) {
  const auto vocabulary = static_cast<std::size_t>(model_->architecture.vocabulary);
  const std::span<const float> all(logits, vocabulary);
  if (!kernels::all_finite(all)) return {.id = segment.id, .token = 0, .ended = batching::Ended::kError};
  const auto limit = static_cast<std::size_t>(options_.vocabulary_limit);
  const std::size_t allowed = limit > 0 && limit < vocabulary ? limit : vocabulary;
  Sequence& sequence = sequences_.at(segment.id);
  drawn_from_.assign(logits, logits + allowed);
  const batching::TokenId token = kernels::sample(drawn_from_, sequence.sampling, sequence.counts,
                                                  segment.first_position + segment.tokens);
  ++sequence.counts.answer[token];
  if (sampled_logits) sampled_logits({segment.id, token, all});
  return {.id = segment.id, .token = token};
}

void CpuExecutor::report_every(const batching::BatchPlan& plan) {
  const auto vocabulary = static_cast<std::size_t>(model_->architecture.vocabulary);
  std::int64_t output = 0;
  for (const batching::Segment& segment : plan.segments) {
    if (!tells_every(segment)) {
      output += segment.samples ? 1 : 0;
      continue;
    }
    for (std::int64_t i = 0; i < segment.tokens; ++i, ++output) {
      every_logits(segment.id, segment.first_position + i, {decoder_->logits(output), vocabulary});
    }
  }
}

batching::StepResult CpuExecutor::run(const batching::BatchPlan& plan) {
  const auto begin = std::chrono::steady_clock::now();
  batching::StepResult result{.tick = plan.tick, .outcomes = {}, .duration_us = 0};
  if (plan.segments.empty()) return result;
  decoder_->run(rows_of(plan), *cache_);
  if (every_logits) report_every(plan);
  std::int64_t output = 0;
  for (const batching::Segment& segment : plan.segments) {
    const std::int64_t outputs = tells_every(segment) ? segment.tokens : segment.samples ? 1 : 0;
    output += outputs;
    if (segment.samples) result.outcomes.push_back(draw(segment, decoder_->logits(output - 1)));
  }
  result.duration_us =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace sextant::engine
