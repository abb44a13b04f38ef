// The engine's products and attention beside the limits of this processor, measured in the same run:
//   A  multiply-adds a second of the widest vectors (a loop of independent ones in registers),
//   R  bytes a second read from memory far larger than the caches, best of 1 to 8 streams a thread,
//   and, where it was found when this was built, OpenBLAS in float32 on the same shapes.
// Ours and the library's take turns; of kRepeats both, median and best are shown, with the share of processor
// time that the host took away meanwhile. Usage: kernel_bench [THREADS] [ISA].
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/attention.h"
#include "kernels/lanes_avx2.h"
#include "kernels/matrix.h"
#include "kernels/shapes.h"

#ifdef SEXTANT_OPENBLAS
#include <cblas.h>
extern "C" void openblas_set_num_threads(int);
#endif

namespace sextant::kernels {
namespace {

constexpr int kRepeats = 7;

double seconds_of(const std::function<void()>& body) {
  if (std::getenv("BENCH_CPU") != nullptr) {
    timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    body();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    return static_cast<double>(b.tv_sec - a.tv_sec) + 1e-9 * static_cast<double>(b.tv_nsec - a.tv_nsec);
  }
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Times {
  std::vector<double> seconds;
  double best() const { return *std::ranges::min_element(seconds); }
  double median() const {
    std::vector<double> sorted = seconds;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
};

/// Jiffies of all processors: stolen by the host, and all together.
std::pair<double, double> processor_jiffies() {
  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line.substr(4));
  double all = 0.0, stolen = 0.0, value = 0.0;
  for (int i = 0; words >> value; ++i) {
    all += value;
    if (i == 7) stolen = value;
  }
  return {stolen, all};
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

/// Multiply-adds in 12 independent chains of 16 floats, which hide their latency of four or five cycles.
double peak_flops(std::size_t threads, int repeats = 5) {
  constexpr int kSteps = 1'000'000;
  constexpr int kChains = 6;
  std::vector<float> sink(threads * 16);
  ThreadTeam team(threads);
  double best = 1e9;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    best = std::min(best, seconds_of([&] {
                      team.run(static_cast<std::int64_t>(threads), [&](std::int64_t index, std::size_t) {
                        Avx2Lanes sums[kChains];
                        for (Avx2Lanes& sum : sums) sum = Avx2Lanes::broadcast(static_cast<float>(index));
                        const Avx2Lanes x = Avx2Lanes::broadcast(0.999F);
                        for (int step = 0; step < kSteps; ++step) {
                          for (Avx2Lanes& sum : sums) sum = Avx2Lanes::multiply_add(sum, x, x);
                        }
                        for (int c = 1; c < kChains; ++c) sums[0] = Avx2Lanes::add(sums[0], sums[c]);
                        Avx2Lanes::store(sink.data() + index * 16, sums[0]);
                      });
                    }));
  }
  volatile float used = sink[0];
  (void)used;
  return 2.0 * 16.0 * kChains * kSteps * static_cast<double>(threads) / best;
}

/// Sums `bytes` through `streams` places at once.
double read_streams(const std::byte* memory, std::int64_t bytes, int streams) {
  __m256i sums[8] = {};
  const std::int64_t share = bytes / streams / 64 * 64;
  for (std::int64_t at = 0; at < share; at += 64) {
    for (int s = 0; s < streams; ++s) {
      const std::byte* from = memory + s * share + at;
      _mm_prefetch(reinterpret_cast<const char*>(from + 1024), _MM_HINT_T0);
      sums[s] = _mm256_add_epi64(sums[s], _mm256_load_si256(reinterpret_cast<const __m256i*>(from)));
      sums[s] = _mm256_add_epi64(sums[s], _mm256_load_si256(reinterpret_cast<const __m256i*>(from + 32)));
    }
  }
  for (int s = 1; s < streams; ++s) sums[0] = _mm256_add_epi64(sums[0], sums[s]);
  return static_cast<double>(_mm256_extract_epi64(sums[0], 0));
}

double read_bandwidth(std::size_t threads) {
  const std::int64_t bytes = std::int64_t{2} << 30;
  const Buffer memory(static_cast<std::size_t>(bytes) + 4096);
  ThreadTeam team(threads);
  double best = 0.0;
  volatile double used = 0.0;
  for (const int streams : {1, 2, 4, 8}) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      const double seconds = seconds_of([&] {
        team.run(static_cast<std::int64_t>(threads), [&](std::int64_t index, std::size_t) {
          const std::int64_t share = bytes / static_cast<std::int64_t>(threads) / 4096 * 4096;
          used = read_streams(memory.data() + index * share, share, streams);
        });
      });
      best = std::max(best, static_cast<double>(bytes) / seconds);
    }
  }
  return best;
}

std::vector<float> numbers(std::int64_t count) {
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(engine);
  return values;
}

/// The library's time on one shape; nothing without it.
class Library {
 public:
  Library(const ProductShape& shape, std::size_t threads) : shape_(shape) {
#ifdef SEXTANT_OPENBLAS
    openblas_set_num_threads(static_cast<int>(threads));
    const std::int64_t matrix = shape.columns * shape.depth;
    copies_ = std::max<std::int64_t>(1, (std::int64_t{96} << 20) / (matrix * 4));
    weights_ = std::vector<float>(static_cast<std::size_t>(matrix * copies_), 0.01F);
    out_.resize(static_cast<std::size_t>(shape.rows * shape.columns));
#else
    (void)threads;
#endif
  }
  void run([[maybe_unused]] const std::vector<float>& x) {
#ifdef SEXTANT_OPENBLAS
    const float* weights = weights_.data() + (next_++ % copies_) * shape_.columns * shape_.depth;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(shape_.rows),
                static_cast<int>(shape_.columns), static_cast<int>(shape_.depth), 1.0F, x.data(),
                static_cast<int>(shape_.depth), weights, static_cast<int>(shape_.depth), 0.0F, out_.data(),
                static_cast<int>(shape_.columns));
#endif
  }
  static constexpr bool exists() {
#ifdef SEXTANT_OPENBLAS
    return true;
#else
    return false;
#endif
  }

 private:
  ProductShape shape_;
  std::int64_t copies_ = 1;
  std::int64_t next_ = 0;
  std::vector<float> weights_, out_;
};

void measure_product(Machine& machine, const ProductShape& shape, ElementType type, double flops,
                     double bandwidth) {
  // Several matrices in turn, so that none is still in a cache.
  const std::int64_t bytes = shape.columns * shape.depth * bytes_of(type);
  const auto copies = static_cast<std::size_t>(std::max<std::int64_t>(1, (std::int64_t{96} << 20) / bytes));
  std::vector<Matrix> weights;
  const std::vector<float> column = numbers(shape.depth);
  for (std::size_t i = 0; i < copies; ++i) {
    Matrix& matrix = weights.emplace_back(shape.columns, shape.depth, type);
    machine.team.run(shape.columns,
                     [&](std::int64_t c, std::size_t) { matrix.set_column(c, column.data()); });
  }
  const std::vector<float> x = numbers(shape.rows * shape.depth);
  std::vector<float> out(static_cast<std::size_t>(shape.rows * weights.front().padded_columns()));
  Library library(shape, machine.team.threads());
  const int calls = static_cast<int>(std::clamp<std::int64_t>(2'000'000'000 / shape.operations(), 1, 40));
  Times ours, theirs;
  std::size_t next = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    ours.seconds.push_back(seconds_of([&] {
                             for (int i = 0; i < calls; ++i) {
                               const Matrix& matrix = weights[next++ % weights.size()];
                               multiply(machine, x.data(), shape.depth, shape.rows, matrix, out.data(),
                                        matrix.padded_columns());
                             }
                           }) /
                           calls);
    theirs.seconds.push_back(seconds_of([&] {
                               for (int i = 0; i < calls; ++i) library.run(x);
                             }) /
                             calls);
  }
  const auto operations = static_cast<double>(shape.operations());
  const auto moved = static_cast<double>(bytes);
  fmt::print("{:4} x {:5} x {:4}  {:8}  {:7.1f} {:7.1f} GFLOP/s {:4.0f} % of A  {:5.1f} GB/s {:4.0f} % of R",
             shape.rows, shape.columns, shape.depth, type == ElementType::kFloat32 ? "float32" : "bfloat16",
             operations / ours.median() / 1e9, operations / ours.best() / 1e9,
             100 * operations / ours.median() / flops, moved / ours.median() / 1e9,
             100 * moved / ours.median() / bandwidth);
  if (Library::exists()) fmt::print("  {:5.2f} of the library's time", ours.median() / theirs.median());
  fmt::print("\n");
}

void measure_attention(Machine& machine, const AttentionCase& shape, ElementType type) {
  const std::int64_t positions = shape.context + shape.rows;
  KeyValueCache cache({.layers = 1,
                       .blocks = (positions + 15) / 16,
                       .block_tokens = 16,
                       .kv_heads = shape.kv_heads,
                       .head_dim = shape.head_dim,
                       .type = type});
  std::vector<std::int32_t> blocks;
  for (std::int32_t block = 0; block < cache.shape().blocks; ++block) blocks.push_back(block);
  const std::vector<float> row = numbers(2 * shape.kv_heads * shape.head_dim);
  for (std::int64_t p = 0; p < positions; ++p) {
    cache.write(0, blocks.data(), p, row.data(), row.data() + shape.kv_heads * shape.head_dim);
  }
  const std::int64_t width = shape.heads * shape.head_dim;
  const std::vector<float> queries = numbers(shape.rows * width);
  std::vector<float> out(queries.size());
  Times times;
  std::vector<double> peaks;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    peaks.push_back(peak_flops(machine.team.threads(), 1));
    times.seconds.push_back(seconds_of([&] {
      attend(machine, cache, 0, {.heads = shape.heads, .window_tokens = shape.window_tokens, .scale = 0.125F},
             {{0, shape.rows, shape.context, blocks.data()}}, queries.data(), width, out.data(), width);
    }));
  }
  const auto operations = static_cast<double>(shape.operations());
  fmt::print("attention {:4} rows after {:4}  {:8}  {:7.1f} {:7.1f} GFLOP/s {:4.0f} % of A\n", shape.rows,
             shape.context, type == ElementType::kFloat32 ? "float32" : "bfloat16",
             operations / times.median() / 1e9, operations / times.best() / 1e9,
             100 * operations / times.best() / *std::ranges::max_element(peaks));
}

void run(std::size_t threads, Isa isa, const std::string& kind) {
  const auto before = processor_jiffies();
  Machine machine(isa, threads);
  const double flops = peak_flops(threads);
  const double bandwidth = read_bandwidth(threads);
  fmt::print("{}, {} threads, {}: A (AVX2) {:.0f} GFLOP/s, R {:.1f} GB/s\n", processor_name(), threads,
             name_of(isa), flops / 1e9, bandwidth / 1e9);
  fmt::print("rows x columns x depth: median and best of {}\n", kRepeats);
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBFloat16}) {
    for (const ProductShape& shape : kProductShapes) {
      if (kind == "attention") break;
      if (shape.operations() > kLargestTested || shape.columns * shape.depth > 1'000'000) {
        measure_product(machine, shape, type, flops, bandwidth);
      }
    }
    for (const AttentionCase& shape : kAttentionCases) {
      if (shape.heads >= 32 && kind != "products") measure_attention(machine, shape, type);
    }
  }
  const auto after = processor_jiffies();
  fmt::print("stolen by the host meanwhile: {:.1f} % of processor time\n",
             100 * (after.first - before.first) / std::max(1.0, after.second - before.second));
}

}  // namespace
}  // namespace sextant::kernels

int main(int argc, char** argv) {
  const std::size_t threads =
      argc > 1 ? std::strtoul(argv[1], nullptr, 10) : sextant::base::default_threads();
  sextant::kernels::run(threads, sextant::kernels::parse_isa(argc > 2 ? argv[2] : "auto", "ISA"),
                         argc > 3 ? argv[3] : "");
  return 0;
}
