// How long orders and replays take: generating an order; a known shape, as in a search; walked in full; first
// sight of a shape.
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <vector>

#include "pipeline/live.h"
#include "pipeline/replay.h"
#include "pipeline/tailored.h"

namespace sextant::pipeline {
namespace {

Shape shape_of(const benchmark::State& state) {
  return {.stages = static_cast<int>(state.range(1)),
          .chunks = static_cast<int>(state.range(2)),
          .microbatches = static_cast<int>(state.range(3))};
}

Algorithm algorithm_of(const benchmark::State& state) { return static_cast<Algorithm>(state.range(0)); }

/// As a projection makes them: first and last stage a little longer, sends of a few per cent.
Durations projected(const Shape& shape) {
  Durations durations = uniform_durations(shape, 0.0123, 0.0127, 0.0119, 0.0004);
  durations.forward_s.front() *= 1.02;
  durations.forward_s.back() *= 1.13;
  durations.backward_input_s.back() *= 1.09;
  durations.send_latency_s = 1e-5;
  return durations;
}

/// All stages different: the hardest case for finding a rhythm.
Durations all_different(const Shape& shape) {
  Durations durations = projected(shape);
  for (std::size_t at = 0; at < durations.forward_s.size(); ++at) {
    durations.forward_s[at] *= 1.0 + 0.1 * std::sin(static_cast<double>(at));
    durations.backward_input_s[at] *= 1.0 + 0.1 * std::cos(3.0 * static_cast<double>(at));
  }
  return durations;
}

void run(benchmark::State& state, const Durations& durations, bool skip) {
  const Shape shape = shape_of(state);
  Replayer replayer;
  replayer.set_skip_periods(skip);
  for (auto _ : state) {
    benchmark::DoNotOptimize(replayer.run(algorithm_of(state), shape, durations).makespan_s);
  }
  state.counters["walked"] = static_cast<double>(replayer.walked_steps());
  state.SetLabel(std::string(name(algorithm_of(state))));
}

void BM_Generate(benchmark::State& state) {
  const Shape shape = shape_of(state);
  for (auto _ : state) benchmark::DoNotOptimize(generate(algorithm_of(state), shape).size());
  state.SetLabel(std::string(name(algorithm_of(state))));
}

void BM_Tailored(benchmark::State& state) {
  const Shape shape = shape_of(state);
  const Durations durations = all_different(shape);
  for (auto _ : state) {
    benchmark::DoNotOptimize(tailored_orders(algorithm_of(state), shape, durations).size());
  }
  state.SetLabel(std::string(name(algorithm_of(state))));
}

void BM_KnownShape(benchmark::State& state) { run(state, projected(shape_of(state)), true); }
void BM_KnownShapeAllStagesDifferent(benchmark::State& state) {
  run(state, all_different(shape_of(state)), true);
}
void BM_WalkedInFull(benchmark::State& state) { run(state, projected(shape_of(state)), false); }

void BM_NewShape(benchmark::State& state) {
  const Shape shape = shape_of(state);
  const Durations durations = projected(shape);
  for (auto _ : state) benchmark::DoNotOptimize(replay(algorithm_of(state), shape, durations).makespan_s);
}

void BM_Operations(benchmark::State& state) {
  const Shape shape = shape_of(state);
  const Durations durations = projected(shape);
  for (auto _ : state) benchmark::DoNotOptimize(operations(algorithm_of(state), shape, durations).size());
}

void BM_LivePerChunk(benchmark::State& state) {
  const Shape shape = shape_of(state);
  std::vector<int> live(static_cast<std::size_t>(shape.chunks));
  for (auto _ : state) {
    live_per_chunk(algorithm_of(state), shape, 0, live);
    benchmark::DoNotOptimize(live.data());
  }
}

void BM_PeakLiveBytes(benchmark::State& state) {
  const Shape shape = shape_of(state);
  const std::vector<double> bytes(static_cast<std::size_t>(shape.chunks), 3.0);
  for (auto _ : state) benchmark::DoNotOptimize(peak_live_bytes(algorithm_of(state), shape, 0, bytes));
}

/// Every algorithm at 8 stages.
void shapes(benchmark::internal::Benchmark* benchmark) {
  for (const Algorithm algorithm : all_algorithms()) {
    const int required = required_chunks(algorithm);
    for (const int chunks : required > 0 ? std::vector<int>{required} : std::vector<int>{2, 4}) {
      for (const int microbatches : {64, 256}) {
        benchmark->Args({static_cast<int>(algorithm), 8, chunks, microbatches});
      }
    }
  }
}

void one_shape(benchmark::internal::Benchmark* benchmark) {
  benchmark->Args({static_cast<int>(Algorithm::kOneForwardOneBackward), 8, 1, 256});
  benchmark->Args({static_cast<int>(Algorithm::kInterleaved), 8, 4, 256});
}

BENCHMARK(BM_Generate)->Apply(shapes)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_Tailored)->Apply(shapes)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_KnownShape)->Apply(shapes)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_KnownShapeAllStagesDifferent)->Apply(shapes)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_WalkedInFull)->Apply(shapes)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_NewShape)->Apply(shapes)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_Operations)->Apply(one_shape)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_LivePerChunk)->Apply(one_shape);
BENCHMARK(BM_PeakLiveBytes)->Apply(one_shape);

}  // namespace
}  // namespace sextant::pipeline
