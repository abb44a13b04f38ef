// What durability costs: one append, one in a batch, and opening a long journal again. The first depends on
// the disk: on a machine whose disk answers a sync from a cache it is far cheaper than on one that waits for
// the platter.
//   SEXTANT_BENCH_FOLDER chooses the disk (default: the temporary folder).
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>

#include "journal/journal.h"
#include "journal/keys.h"

namespace sextant::journal {
namespace {

struct Scratch {
  std::filesystem::path folder = [] {
    const char* chosen = std::getenv("SEXTANT_BENCH_FOLDER");
    std::filesystem::path path = chosen != nullptr ? chosen : std::filesystem::temp_directory_path();
    path /= "sextant_append_bench";
    std::filesystem::remove_all(path);
    return path;
  }();
  ~Scratch() { std::filesystem::remove_all(folder); }
  std::string path() const { return (folder / "run.sqlite").string(); }
};

Note note(std::size_t bytes) { return {"bench", std::string(bytes, 'x')}; }

void append(benchmark::State& state) {
  const Scratch scratch;
  Writer writer = Writer::create(scratch.path(), {}, {});
  const auto bytes = static_cast<std::size_t>(state.range(0));
  for (auto _ : state) writer.append(note(bytes));
}
BENCHMARK(append)->Arg(100)->Arg(10'000)->Arg(1'000'000)->Unit(benchmark::kMicrosecond)->UseRealTime();

void append_in_batches_of_100(benchmark::State& state) {
  const Scratch scratch;
  Writer writer = Writer::create(scratch.path(), {}, {});
  for (auto _ : state) {
    Batch batch = writer.batch();
    for (int i = 0; i < 100; ++i) batch.add(note(100));
    batch.commit();
  }
  state.SetItemsProcessed(state.iterations() * 100);
}
BENCHMARK(append_in_batches_of_100)->Unit(benchmark::kMicrosecond)->UseRealTime();

/// Every page and every checksum of so many records.
void open_to_go_on(benchmark::State& state) {
  const Scratch scratch;
  {
    Writer writer = Writer::create(scratch.path(), {}, {});
    Batch batch = writer.batch();
    for (std::int64_t i = 0; i < state.range(0); ++i) batch.add(note(1000));
    batch.commit();
  }
  for (auto _ : state) Writer::open(scratch.path(), {});
}
BENCHMARK(open_to_go_on)->Arg(1000)->Arg(100'000)->Unit(benchmark::kMillisecond)->UseRealTime();

void look_for_keys_in_a_megabyte(benchmark::State& state) {
  std::string text;
  while (text.size() < 1'000'000)
    text += "iteration 71/100 | elapsed time per iteration (ms): 5400.0 | lm loss: 1.75 |\n";
  for (auto _ : state) benchmark::DoNotOptimize(find_key(text));
}
BENCHMARK(look_for_keys_in_a_megabyte)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sextant::journal
