// The orders that need no search: every stage follows a rule of a few lines.
//
// 1F1B ("PipeDream-Flush", Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, 2021): stage r
// runs min(M, P-1-r) forwards ahead, then forward and backward in turn, then the remaining backwards. At the
// start of the turn just as many micro-batches are on their way as there are stages behind it, so the first
// backward arrives when the last warm-up forward is done.
//
// Interleaved 1F1B (Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, 2021): V
// chunks per stage shorten the filling by V. Megatron-LM counts chunk passes: 2(P-1-r) + (V-1)·N forwards
// ahead (get_pp_rank_microbatches in core/pipeline_parallel/schedules.py), then in turn. The pass that starts
// the turn on the last stage is the first one of the last chunk, whose backward can follow at once; each
// stage before it needs two passes more, one for the way down and one for the way up.
//
// GPipe (Huang et al. 2019): all forwards, then all backwards, first micro-batch first as in
// torch.distributed.pipelining's ScheduleGPipe.
#include "pipeline/orders.h"

#include <algorithm>

#include "base/check.h"

namespace sextant::pipeline {

int warmup_passes(Algorithm algorithm, const Shape& shape, int stage) {
  const int behind = shape.stages - 1 - stage;
  if (algorithm == Algorithm::kOneForwardOneBackward) return std::min(shape.microbatches, behind);
  SEXTANT_CHECK(algorithm == Algorithm::kInterleaved);
  return std::min(2 * behind + (shape.chunks - 1) * group_size(shape), shape.microbatches * shape.chunks);
}

std::vector<Step> one_forward_one_backward_order(const Shape& shape, int stage) {
  const int warmup = warmup_passes(Algorithm::kOneForwardOneBackward, shape, stage);
  std::vector<Step> order;
  order.reserve(2 * static_cast<std::size_t>(shape.microbatches));
  for (int ahead = 0; ahead < warmup; ++ahead) order.push_back({0, ahead, Kind::kForward});
  for (int backward = 0; backward < shape.microbatches; ++backward) {
    const int forward = backward + warmup;
    if (forward < shape.microbatches) order.push_back({0, forward, Kind::kForward});
    order.push_back({0, backward, Kind::kBackward});
  }
  return order;
}

InterleavedCursor::InterleavedCursor(const Shape& shape)
    : chunks_(shape.chunks),
      microbatches_(shape.microbatches),
      group_(group_size(shape)),
      size_(std::min(group_, shape.microbatches)) {}

void InterleavedCursor::advance() {
  if (++offset_ < size_) return;
  offset_ = 0;
  if (++chunk_ < chunks_) return;
  chunk_ = 0;
  first_ += size_;
  size_ = std::min(group_, microbatches_ - first_);
}

std::vector<Step> interleaved_order(const Shape& shape, int stage) {
  const int passes = shape.microbatches * shape.chunks;
  const int warmup = warmup_passes(Algorithm::kInterleaved, shape, stage);
  std::vector<Step> order;
  order.reserve(2 * static_cast<std::size_t>(passes));
  InterleavedCursor forward(shape);
  InterleavedCursor backward(shape);
  const auto push_forward = [&] {
    order.push_back({forward.chunk(), forward.microbatch(), Kind::kForward});
    forward.advance();
  };
  for (int pass = 0; pass < warmup; ++pass) push_forward();
  for (int pass = 0; pass < passes; ++pass) {
    if (pass + warmup < passes) push_forward();
    order.push_back({shape.chunks - 1 - backward.chunk(), backward.microbatch(), Kind::kBackward});
    backward.advance();
  }
  return order;
}

std::vector<Step> gpipe_order(const Shape& shape) {
  std::vector<Step> order;
  order.reserve(2 * static_cast<std::size_t>(shape.microbatches));
  for (const Kind kind : {Kind::kForward, Kind::kBackward}) {
    for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
      order.push_back({0, microbatch, kind});
    }
  }
  return order;
}

Period period_of(Algorithm algorithm, const Shape& shape) {
  switch (algorithm) {
    case Algorithm::kOneForwardOneBackward:
      // P forwards reach the last stage, one backward comes back, one period repeats.
      return {1, shape.stages + 2};
    case Algorithm::kInterleaved:
      // Stage 0 is 2(P-1) + (V-1)·N < (V+1)·N passes ahead, one more period is V·N: together at most 3·V·N.
      return {group_size(shape), 3 * group_size(shape)};
    case Algorithm::kGpipe:
      return {};
    // Below, one micro-batch more is one more turn of the steady state; beginning and end together take as
    // many micro-batches as are alive in all, at most 2P of them on their way down and up and 2P back.
    case Algorithm::kZeroBubbleH1:
    case Algorithm::kVHalf:
    case Algorithm::kVMin:
      return {1, 2 * shape.stages + 9};
    case Algorithm::kZeroBubbleH2:
    case Algorithm::kZeroBubbleV:
    case Algorithm::kDualPipeV:
      return {1, 4 * shape.stages + 2};
  }
  SEXTANT_CHECK(false);
  return {};
}

Shape without_repeats(Algorithm algorithm, const Shape& shape) {
  const Period period = period_of(algorithm, shape);
  Shape reduced = shape;
  if (period.microbatches == 0) return reduced;
  const int surplus = std::max(0, shape.microbatches - period.warm_microbatches);
  reduced.microbatches -= surplus / period.microbatches * period.microbatches;
  return reduced;
}

}  // namespace sextant::pipeline
