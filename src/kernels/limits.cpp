#include "kernels/limits.h"

#include <immintrin.h>

#include <chrono>
#include <vector>

namespace sextant::kernels {
namespace {

constexpr std::int64_t kMemory = std::int64_t{2} << 30;
constexpr std::int64_t kSlices = 8;
constexpr std::int64_t kLine = 64;
constexpr std::int64_t kAhead = 16 * kLine;  ///< of prefetches

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Sums `bytes` through kStreams places at once; the sum keeps the loads from being dropped.
template <int kStreams>
std::int64_t read_streams(const std::byte* memory, std::int64_t bytes) {
  __m256i sums[kStreams] = {};
  const std::int64_t share = bytes / kStreams / kLine * kLine;
  for (std::int64_t at = 0; at < share; at += kLine) {
#pragma GCC unroll 8
    for (int s = 0; s < kStreams; ++s) {
      const std::byte* from = memory + s * share + at;
      _mm_prefetch(reinterpret_cast<const char*>(from + kAhead), _MM_HINT_T0);
      const auto* words = reinterpret_cast<const __m256i*>(from);
      sums[s] = _mm256_add_epi64(sums[s], _mm256_load_si256(words));
      sums[s] = _mm256_add_epi64(sums[s], _mm256_load_si256(words + 1));
    }
  }
  for (int s = 1; s < kStreams; ++s) sums[0] = _mm256_add_epi64(sums[0], sums[s]);
  return _mm256_extract_epi64(sums[0], 0);
}

std::int64_t read(const std::byte* memory, std::int64_t bytes, int streams) {
  switch (streams) {
    case 2:
      return read_streams<2>(memory, bytes);
    case 4:
      return read_streams<4>(memory, bytes);
    case 8:
      return read_streams<8>(memory, bytes);
    default:
      return read_streams<1>(memory, bytes);
  }
}

}  // namespace

double multiply_adds_per_s(Machine& machine, ElementType type) {
  constexpr double kSeconds = 0.01;
  const MultiplyKernels& kernels =
      type == ElementType::kFloat32 ? machine.kernels->float32 : machine.kernels->bfloat16;
  const auto threads = static_cast<std::int64_t>(machine.team.threads());
  std::vector<float> sinks(machine.team.threads() * 16);
  // As many steps as take one thread that long: then waking the others counts little.
  std::int64_t steps = 64;
  for (double seconds = 0.0; seconds < kSeconds; steps *= 2) {
    const double begin = now_s();
    kernels.multiply_adds(steps, sinks.data());
    seconds = now_s() - begin;
  }
  const double begin = now_s();
  machine.team.run(threads, [&](std::int64_t index, std::size_t) {
    kernels.multiply_adds(steps, sinks.data() + index * 16);
  });
  return static_cast<double>(kernels.operations_a_step * steps * threads) / (now_s() - begin);
}

ReadProbe::ReadProbe(ThreadTeam& team) : memory_(static_cast<std::size_t>(kMemory + 8 * kAhead)) {
  double best = 0.0;
  for (const int streams : {1, 2, 4, 8}) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      const double rate = read_slice(team, streams);
      if (rate <= best) continue;
      best = rate;
      streams_ = streams;
    }
  }
}

double ReadProbe::bytes_per_s(ThreadTeam& team) { return read_slice(team, streams_); }

double ReadProbe::read_slice(ThreadTeam& team, int streams) {
  constexpr std::int64_t kPage = 4096;
  const std::int64_t bytes = kMemory / kSlices;
  const auto threads = static_cast<std::int64_t>(team.threads());
  const std::int64_t share = bytes / threads / kPage * kPage;
  const std::byte* slice = memory_.data() + slice_ * bytes;
  slice_ = (slice_ + 1) % kSlices;
  std::vector<std::int64_t> sums(team.threads());
  const double begin = now_s();
  team.run(threads, [&](std::int64_t index, std::size_t) {
    sums[static_cast<std::size_t>(index)] = read(slice + index * share, share, streams);
  });
  const double seconds = now_s() - begin;
  volatile std::int64_t used = sums.front();
  (void)used;
  return static_cast<double>(share * threads) / seconds;
}

}  // namespace sextant::kernels
