// The engine's products and attention beside the limits of this processor, measured in the same run:
//   A  multiply-adds a second of a loop in registers, R  bytes a second read from 2 GiB (kernels/limits.h),
//   and the best library's time on the same shapes (library_products.h).
// They take turns; of kRepeats each, median and best are shown, shares of A and R by the best.
// Usage: kernel_bench [THREADS] [ISA] [products|attention].
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
#include "kernels/host.h"
#include "kernels/limits.h"
#include "kernels/matrix.h"
#include "kernels/shapes.h"
#include "library_products.h"

namespace sextant::kernels {
namespace {

constexpr int kRepeats = 7;

double seconds_of(const std::function<void()>& body) {
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

std::vector<float> numbers(std::int64_t count) {
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(engine);
  return values;
}

void measure_product(Machine& machine, const ProductShape& shape, ElementType type, double bandwidth) {
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
  const auto libraries = bench_library::libraries({{shape.columns, shape.depth}}, machine.team.threads());
  const int calls = static_cast<int>(std::clamp<std::int64_t>(2'000'000'000 / shape.operations(), 1, 40));
  Times ours, theirs;
  std::vector<double> peaks;
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
    peaks.push_back(multiply_adds_per_s(machine, type));
    for (std::size_t i = 0; i < libraries.size(); ++i) {
      const double seconds = libraries[i]->seconds(shape.rows, 0);
      if (i == 0) theirs.seconds.push_back(seconds);
      theirs.seconds.back() = std::min(theirs.seconds.back(), seconds);
    }
  }
  const auto operations = static_cast<double>(shape.operations());
  const auto moved = static_cast<double>(bytes);
  fmt::print("{:4} x {:5} x {:4}  {:8}  {:7.1f} {:7.1f} GFLOP/s {:4.0f} % of A  {:5.1f} GB/s {:4.0f} % of R",
             shape.rows, shape.columns, shape.depth, type == ElementType::kFloat32 ? "float32" : "bfloat16",
             operations / ours.median() / 1e9, operations / ours.best() / 1e9,
             100 * operations / ours.best() / *std::ranges::max_element(peaks), moved / ours.median() / 1e9,
             100 * moved / ours.median() / bandwidth);
  if (!libraries.empty())
    fmt::print("  {:5.2f} of the library's time (best {:.2f})", ours.median() / theirs.median(),
               ours.best() / theirs.best());
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
    peaks.push_back(multiply_adds_per_s(machine, type));
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
  const StolenTime stolen;
  Machine machine(isa, threads);
  ReadProbe probe(machine.team);
  double bandwidth = 0.0;
  for (int repeat = 0; repeat < kRepeats; ++repeat)
    bandwidth = std::max(bandwidth, probe.bytes_per_s(machine.team));
  fmt::print("{}, {} threads, {}: R {:.1f} GB/s\n", processor_name(), threads, name_of(isa), bandwidth / 1e9);
  fmt::print("rows x columns x depth: median and best of {}\n", kRepeats);
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBFloat16}) {
    for (const ProductShape& shape : kProductShapes) {
      if (kind == "attention") break;
      if (shape.operations() > kLargestTested || shape.columns * shape.depth > 1'000'000) {
        measure_product(machine, shape, type, bandwidth);
      }
    }
    for (const AttentionCase& shape : kAttentionCases) {
      if (shape.heads >= 32 && kind != "products") measure_attention(machine, shape, type);
    }
  }
  fmt::print("stolen by the host meanwhile: {:.1f} % of processor time\n", 100 * stolen.share());
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
