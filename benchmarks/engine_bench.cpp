// Steps of a whole model beside three limits, all measured in turn with the same threads:
//   G  the time of the model's own projections by the best library (library_products.h), the head at the rows
//      that are sampled only,
//   A  multiply-adds a second of the fastest loop in registers,
//   R  bytes a second read from 2 GiB.
// Prefill is told as a multiple of G, decoding as a multiple of the larger of bytes / R and G. Usage:
//   engine_bench [--layers N] [--prefill N,...] [--batch N,...] [--context N,...] [--repeats N] [--threads N]
//                [--isa SET]
// The shape is that of Llama 3.2 1B: 16 layers, hidden 2048, 32/8 heads of 64, FFN 8192, a tied vocabulary of
// 128,256, random weights in bfloat16. Fewer --layers make long prompts affordable; all ratios keep their
// sense.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "base/thread_pool.h"
#include "engine/speed.h"
#include "kernels/host.h"
#include "library_products.h"

namespace {

using namespace sextant;

struct Flags {
  std::int64_t layers = 16;
  std::vector<std::int64_t> prefills = {128, 1024};
  std::vector<std::int64_t> batches = {1, 16};
  std::vector<std::int64_t> contexts = {128, 1024};
  int repeats = 5;
  std::size_t threads = base::default_threads();
  std::string isa = "auto";
};

/// G, by the library that is fastest at that many rows. Which one is asked again at each repeat.
class BestLibrary {
 public:
  BestLibrary(const model::Model& model, std::size_t threads) : layers_(model.layers()) {
    const model::Attention& a = model.classes.front().attention;
    const std::int64_t ffn = model.classes.front().mlp.ffn;
    const std::vector<bench_library::Projection> projections = {
        {(a.heads + 2 * a.kv_heads) * a.head_dim, model.hidden},
        {model.hidden, a.heads * a.head_dim},
        {2 * ffn, model.hidden},
        {model.hidden, ffn},
        {model.vocabulary, model.hidden}};
    head_ = projections.size() - 1;
    all_ = bench_library::libraries(projections, threads);
  }

  bool exists() const { return !all_.empty(); }

  double seconds(std::int64_t rows, std::int64_t outputs) {
    double best = 1e9;
    for (const auto& library : all_) {
      double layer = 0.0;
      for (std::size_t projection = 0; projection < head_; ++projection)
        layer += library->seconds(rows, projection);
      const double all = layer * static_cast<double>(layers_) + library->seconds(outputs, head_);
      if (all < best) fastest_ = library->name();
      best = std::min(best, all);
    }
    return best;
  }
  const std::string& fastest() const { return fastest_; }

 private:
  std::int64_t layers_;
  std::size_t head_ = 0;
  std::vector<std::unique_ptr<bench_library::Products>> all_;
  std::string fastest_;
};

void show(const engine::SpeedPoint& point, const BestLibrary& library) {
  const double peak = point.multiply_adds_per_s.median();
  const double rate = point.read_bytes_per_s.median();
  const auto against = [&](double seconds, double g, double bandwidth) {
    return seconds / (point.prefill ? g : std::max(point.bytes / bandwidth, g));
  };
  if (point.prefill) {
    fmt::print("prefill {:5}", point.context);
  } else {
    fmt::print("decode {:3} after {:5}", point.batch, point.context);
  }
  fmt::print("  {:8.1f} ms (best {:8.1f})  {:7.1f} tokens/s  {:3.0f} % of A ({:.0f} GFLOP/s)",
             1e3 * point.seconds.median(), 1e3 * point.seconds.least(),
             point.tokens() / point.seconds.median(), 100 * point.operations / point.seconds.median() / peak,
             peak / 1e9);
  if (!point.prefill) {
    fmt::print("  {:3.0f} % of R (best of best {:.0f} %; {:.1f} GB/s)",
               100 * point.bytes / point.seconds.median() / rate,
               100 * point.bytes / point.seconds.least() / point.read_bytes_per_s.most(), rate / 1e9);
  }
  if (!point.library_s.values.empty()) {
    fmt::print("  G {:8.1f} ms ({})  {} {:.2f} (best {:.2f})", 1e3 * point.library_s.median(),
               library.fastest(), point.prefill ? "of G" : "of max(bytes/R, G)",
               against(point.seconds.median(), point.library_s.median(), rate),
               against(point.seconds.least(), point.library_s.least(), point.read_bytes_per_s.most()));
  }
  fmt::print("\n");
  std::fflush(stdout);
}

void run(const Flags& flags) {
  const engine::ServedModel model = engine::model_of_shape(fmt::format(
      "layers={},hidden=2048,heads=32,kv_heads=8,head_dim=64,ffn=8192,vocabulary=128256,tied=true",
      flags.layers));
  engine::SpeedOptions options{.cpu = {.isa = kernels::parse_isa(flags.isa, "--isa"),
                                       .type = kernels::ElementType::kBFloat16,
                                       .threads = flags.threads},
                               .prefills = flags.prefills,
                               .batches = flags.batches,
                               .contexts = flags.contexts,
                               .repeats = flags.repeats};
  fmt::print("{}, {} threads, {}, {} layers, {} repeats in turn: medians\n", kernels::processor_name(),
             flags.threads, kernels::name_of(options.cpu.isa), flags.layers, flags.repeats);
  BestLibrary library(model.architecture, flags.threads);
  if (!library.exists()) fmt::print("no library was found when this was built: no G\n");
  engine::LibrarySeconds seconds;
  if (library.exists())
    seconds = [&](std::int64_t rows, std::int64_t outputs) { return library.seconds(rows, outputs); };
  const auto report = engine::measure_speed(model, *engine::dummy_tensors(), options, seconds,
                                            [&](const engine::SpeedPoint& point) { show(point, library); });
  fmt::print("stolen by the host meanwhile: {:.1f} % of processor time\n", 100 * report.stolen_share);
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Steps of a whole model beside the limits of this processor");
  const auto list = [&](const char* name, std::vector<std::int64_t>& numbers) {
    app.add_option(name, numbers)->delimiter(',')->expected(0, -1);
  };
  app.add_option("--layers", flags.layers);
  list("--prefill", flags.prefills);
  list("--batch", flags.batches);
  list("--context", flags.contexts);
  app.add_option("--repeats", flags.repeats);
  app.add_option("--threads", flags.threads);
  app.add_option("--isa", flags.isa);
  CLI11_PARSE(app, argc, argv);
  run(flags);
  return 0;
}
