// Each count has a closed form where the schedule has one; every other schedule is counted along its order.
#include "pipeline/live.h"

#include <algorithm>

#include "base/check.h"
#include "pipeline/orders.h"

namespace sextant::pipeline {
namespace {

void check_shape(Algorithm algorithm, const Shape& shape, int stage) {
  SEXTANT_CHECK(!unschedulable(algorithm, shape).has_value());
  SEXTANT_CHECK(stage >= 0 && stage < shape.stages);
}

/// How many of the first `passes` forwards of a stage go through `chunk`: in groups of N (interleaved), and
/// with one chunk all of them whatever N is.
int forwards_through(const Shape& shape, int passes, int chunk) {
  const int group = group_size(shape);
  const int whole_groups = std::min(passes / (group * shape.chunks), shape.microbatches / group);
  const int rest = passes - whole_groups * group * shape.chunks;
  const int size = std::min(group, shape.microbatches - whole_groups * group);
  return whole_groups * group + std::clamp(rest - chunk * size, 0, size);
}

/// The interleaved steady state: a forward joins, a backward leaves, in turn.
double peak_interleaved_bytes(const Shape& whole_shape, int stage, std::span<const double> bytes_per_chunk) {
  const Shape shape = without_repeats(Algorithm::kInterleaved, whole_shape);
  const int passes = shape.microbatches * shape.chunks;
  const int warmup = warmup_passes(Algorithm::kInterleaved, shape, stage);
  InterleavedCursor forward(shape);
  InterleavedCursor backward(shape);
  const auto bytes_of = [&](int chunk) { return bytes_per_chunk[static_cast<std::size_t>(chunk)]; };
  double bytes = 0.0;
  for (int pass = 0; pass < warmup; ++pass, forward.advance()) bytes += bytes_of(forward.chunk());
  double peak = bytes;
  for (int pass = warmup; pass < passes; ++pass, forward.advance(), backward.advance()) {
    bytes += bytes_of(forward.chunk());
    peak = std::max(peak, bytes);
    bytes -= bytes_of(shape.chunks - 1 - backward.chunk());
  }
  return peak;
}

/// Whether `kind` is the step after which nothing of a chunk pass is needed any more.
bool frees(Kind kind) { return kind == Kind::kBackward || kind == Kind::kBackwardWeight; }

bool has_closed_form(Algorithm algorithm) { return !splits_weight_gradient(algorithm); }

/// The peaks of one stage by counting; a middle that repeats does not change them.
LivePeak counted(Algorithm algorithm, const Shape& shape, int stage) {
  return live_peak(generate_stage(algorithm, without_repeats(algorithm, shape), stage), shape.chunks);
}

}  // namespace

LivePeak live_peak(std::span<const Step> order, int chunks) {
  LivePeak peak{.per_chunk = std::vector<int>(static_cast<std::size_t>(chunks))};
  std::vector<int> live(static_cast<std::size_t>(chunks));
  int passes = 0;
  int pending = 0;
  for (const Step& step : order) {
    int& of_chunk = live[static_cast<std::size_t>(step.chunk)];
    if (step.kind == Kind::kForward) {
      ++of_chunk;
      if (++passes > peak.chunk_passes) {
        peak.chunk_passes = passes;
        peak.per_chunk = live;
      }
    } else if (frees(step.kind)) {
      --of_chunk;
      --passes;
    }
    if (step.kind == Kind::kBackwardInput) ++pending;
    if (step.kind == Kind::kBackwardWeight) --pending;
    peak.pending_weight_gradients = std::max(peak.pending_weight_gradients, pending);
  }
  return peak;
}

double peak_live_bytes(std::span<const Step> order, std::span<const double> bytes_per_chunk) {
  std::vector<int> live(bytes_per_chunk.size());
  double peak = 0.0;
  for (const Step& step : order) {
    int& of_chunk = live[static_cast<std::size_t>(step.chunk)];
    if (frees(step.kind)) --of_chunk;
    if (step.kind != Kind::kForward) continue;
    ++of_chunk;
    double bytes = 0.0;
    for (std::size_t chunk = 0; chunk < live.size(); ++chunk) bytes += live[chunk] * bytes_per_chunk[chunk];
    peak = std::max(peak, bytes);
  }
  return peak;
}

int peak_live_chunks(Algorithm algorithm, const Shape& shape, int stage) {
  check_shape(algorithm, shape, stage);
  if (algorithm == Algorithm::kGpipe) return shape.microbatches;
  if (has_closed_form(algorithm)) {
    return std::min(warmup_passes(algorithm, shape, stage) + 1, shape.microbatches * shape.chunks);
  }
  return counted(algorithm, shape, stage).chunk_passes;
}

int peak_pending_weight_gradients(Algorithm algorithm, const Shape& shape, int stage) {
  check_shape(algorithm, shape, stage);
  if (!splits_weight_gradient(algorithm)) return 0;
  return counted(algorithm, shape, stage).pending_weight_gradients;
}

std::vector<int> live_per_chunk(Algorithm algorithm, const Shape& shape, int stage) {
  std::vector<int> live(static_cast<std::size_t>(shape.chunks));
  live_per_chunk(algorithm, shape, stage, live);
  return live;
}

void live_per_chunk(Algorithm algorithm, const Shape& shape, int stage, std::span<int> live) {
  check_shape(algorithm, shape, stage);
  SEXTANT_CHECK_EQ(live.size(), static_cast<std::size_t>(shape.chunks));
  if (!has_closed_form(algorithm)) {
    std::ranges::copy(counted(algorithm, shape, stage).per_chunk, live.begin());
    return;
  }
  const int passes = peak_live_chunks(algorithm, shape, stage);
  for (int chunk = 0; chunk < shape.chunks; ++chunk) {
    live[static_cast<std::size_t>(chunk)] = forwards_through(shape, passes, chunk);
  }
}

double peak_live_bytes(Algorithm algorithm, const Shape& shape, int stage,
                       std::span<const double> bytes_per_chunk) {
  check_shape(algorithm, shape, stage);
  SEXTANT_CHECK_EQ(bytes_per_chunk.size(), static_cast<std::size_t>(shape.chunks));
  if (algorithm == Algorithm::kInterleaved) return peak_interleaved_bytes(shape, stage, bytes_per_chunk);
  if (has_closed_form(algorithm)) return bytes_per_chunk[0] * peak_live_chunks(algorithm, shape, stage);
  return peak_live_bytes(generate_stage(algorithm, without_repeats(algorithm, shape), stage),
                         bytes_per_chunk);
}

std::vector<LivePeak> live_peaks(Algorithm algorithm, const Shape& shape) {
  std::vector<LivePeak> peaks;
  if (has_closed_form(algorithm)) {
    for (int stage = 0; stage < shape.stages; ++stage) {
      peaks.push_back({.chunk_passes = peak_live_chunks(algorithm, shape, stage),
                       .per_chunk = live_per_chunk(algorithm, shape, stage)});
    }
    return peaks;
  }
  for (const auto& order : generate(algorithm, without_repeats(algorithm, shape))) {
    peaks.push_back(live_peak(order, shape.chunks));
  }
  return peaks;
}

}  // namespace sextant::pipeline
