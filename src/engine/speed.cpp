#include "engine/speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "config/document.h"
#include "engine/memory_plan.h"
#include "kernels/host.h"
#include "kernels/limits.h"
#include "kernels/panels.h"

namespace sextant::engine {
namespace {

using batching::TokenId;

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kShapeKeys = {
    {{"layers", "num_hidden_layers"},
     {"hidden", "hidden_size"},
     {"heads", "num_attention_heads"},
     {"kv_heads", "num_key_value_heads"},
     {"head_dim", "head_dim"},
     {"ffn", "intermediate_size"},
     {"vocabulary", "vocab_size"},
     {"tied", "tie_word_embeddings"}}};

config::Node text_node(const std::string& text, const std::string& path, bool quoted) {
  config::Node node;
  node.kind = config::Node::Kind::kScalar;
  node.text = text;
  node.quoted = quoted;
  node.position = {"--model"};
  node.path = path;
  return node;
}

class Measurement {
 public:
  Measurement(const ServedModel& model, const TensorSource& source, const SpeedOptions& options)
      : options_(options),
        executor_(model, source, with_cache(options)),
        machine_(options.cpu.isa, options.cpu.threads),
        reads_(machine_.team) {}

  /// Of the cache, for the largest of all points.
  static std::int64_t blocks_needed(const SpeedOptions& options) {
    std::int64_t blocks = 0;
    for (const std::int64_t tokens : options.prefills) blocks = std::max(blocks, blocks_of(tokens));
    for (const std::int64_t context : options.contexts) {
      for (const std::int64_t batch : options.batches)
        blocks = std::max(blocks, batch * blocks_of(context + 1));
    }
    return blocks;
  }

  SpeedPoint prefill(std::int64_t tokens, const LibrarySeconds& library) {
    SpeedPoint point{.prefill = true, .context = tokens};
    point.operations =
        operations(tokens, 1, static_cast<double>(tokens) * (static_cast<double>(tokens) + 1) / 2);
    return repeated(std::move(point), library, [&] {
      for (std::int64_t first = 0; first < tokens; first += options_.step_tokens) {
        const std::int64_t now = std::min(options_.step_tokens, tokens - first);
        run(1, first, now, first + now == tokens);
      }
    });
  }

  SpeedPoint decode(std::int64_t batch, std::int64_t context, const LibrarySeconds& library) {
    SpeedPoint point{.batch = batch, .context = context};
    const auto keys = static_cast<double>(batch * (context + 1));
    point.operations = operations(batch, batch, keys);
    point.bytes = static_cast<double>(weights().streamed_bytes()) + keys * bytes_of_position();
    run(batch, context, 1, true);  // memory for so many rows
    return repeated(std::move(point), library, [&] { run(batch, context, 1, true); });
  }

 private:
  const DenseWeights& weights() { return executor_.decoder().weights(); }
  const model::Model& architecture() const { return executor_.model().architecture; }

  static std::int64_t blocks_of(std::int64_t tokens) {
    const std::int64_t block = batching::CacheSpec().block_tokens;
    return (tokens + block - 1) / block;
  }

  static CpuOptions with_cache(const SpeedOptions& options) {
    CpuOptions cpu = options.cpu;
    cpu.cache = {.blocks = blocks_needed(options)};
    return cpu;
  }

  /// `pairs`: of a query and a key that it sees.
  double operations(std::int64_t rows, std::int64_t outputs, double pairs) {
    const auto size = [](const kernels::Matrix& m) { return static_cast<double>(m.columns() * m.depth()); };
    const model::Attention& a = architecture().classes.front().attention;
    double each_row = 0.0;
    for (const DenseLayer& layer : weights().layers)
      each_row += size(layer.query_key_value) + size(layer.output) + size(layer.gate_up) + size(layer.down);
    const double attention = 4.0 * static_cast<double>(a.heads * a.head_dim * architecture().layers());
    return 2.0 * static_cast<double>(rows) * each_row +
           2.0 * static_cast<double>(outputs) * size(weights().head) + attention * pairs;
  }

  double bytes_of_position() const {
    const model::Attention& a = architecture().classes.front().attention;
    const std::int64_t width = kernels::round_up(a.head_dim, kernels::kPanelColumns);
    return static_cast<double>(2 * architecture().layers() * a.kv_heads * width *
                               kernels::bytes_of(options_.cpu.type));
  }

  /// Sequences 0 … batch - 1, each with `tokens` from `first` on.
  void run(std::int64_t batch, std::int64_t first, std::int64_t tokens, bool samples) {
    batching::BatchPlan plan{.tick = ++tick_, .kind = batching::StepKind::kMixed};
    const std::int64_t blocks = blocks_of(first + tokens);
    for (std::int64_t id = 0; id < batch; ++id) {
      executor_.begin(id, {}, {});
      plan.segments.push_back({.id = id, .first_position = first, .tokens = tokens, .samples = samples});
      for (std::int64_t i = 0; i < tokens; ++i)
        plan.token_ids.push_back(
            static_cast<TokenId>((7 * (id + first + i) + 1) % architecture().vocabulary));
      std::vector<std::int32_t>& table = plan.block_tables.emplace_back();
      for (std::int64_t b = 0; b < blocks; ++b) table.push_back(static_cast<std::int32_t>(id * blocks + b));
    }
    executor_.run(plan);
  }

  SpeedPoint repeated(SpeedPoint point, const LibrarySeconds& library, const std::function<void()>& body) {
    for (int repeat = 0; repeat < options_.repeats; ++repeat) {
      point.multiply_adds_per_s.values.push_back(kernels::multiply_adds_per_s(machine_, options_.cpu.type));
      point.read_bytes_per_s.values.push_back(reads_.bytes_per_s(machine_.team));
      if (library) {
        point.library_s.values.push_back(point.prefill ? library(point.context, 1)
                                                       : library(point.batch, point.batch));
      }
      const auto begin = std::chrono::steady_clock::now();
      body();
      point.seconds.values.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return point;
  }

  SpeedOptions options_;
  CpuExecutor executor_;
  kernels::Machine machine_;  // of the limits; the executor's own waits meanwhile
  kernels::ReadProbe reads_;
  std::int64_t tick_ = 0;
};

}  // namespace

double Samples::median() const {
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  return sorted[sorted.size() / 2];
}
double Samples::least() const { return std::ranges::min(values); }
double Samples::most() const { return std::ranges::max(values); }

bool is_shape(const std::string& model) { return model.find('=') != std::string::npos; }

ServedModel model_of_shape(const std::string& shape) {
  config::Node document;
  document.kind = config::Node::Kind::kMapping;
  document.position = {"--model"};
  config::set_entry(document, "model_type", text_node("llama", "", true));
  config::set_entry(document, "dtype", text_node("bfloat16", "", true));
  for (const std::string& part : base::split(shape, ',')) {
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    const auto found = std::ranges::find(kShapeKeys, key, &decltype(kShapeKeys)::value_type::first);
    if (equals == std::string::npos || found == kShapeKeys.end()) {
      std::vector<std::string> names;
      for (const auto& [name, of_config] : kShapeKeys) names.emplace_back(name);
      throw base::UserError({"--model"}, {},
                            fmt::format("'{}' is no part of a shape; a shape is a list of KEY=VALUE with {}",
                                        part, base::join(names, ", ")));
    }
    config::set_entry(document, found->second, text_node(part.substr(equals + 1), key, false));
  }
  for (const auto& [key, of_config] : kShapeKeys) {
    const bool optional = key == "kv_heads" || key == "head_dim" || key == "tied";
    if (!optional && document.find(of_config) == nullptr)
      throw base::UserError({"--model"}, std::string(key), "is missing from the shape");
  }
  return served_model_of(document, shape);
}

namespace {

void require_memory(const ServedModel& model, const SpeedOptions& options) {
  CpuOptions one = options.cpu;
  one.cache = {.blocks = 1};
  const double wanted = static_cast<double>(CpuExecutor::cache_bytes(model, one)) *
                        static_cast<double>(Measurement::blocks_needed(options));
  const auto available = available_bytes();
  if (!available || wanted <= static_cast<double>(*available)) return;
  throw base::UserError(
      {"--batch and --context"}, {},
      fmt::format("need {} for keys and values, and {} are available; lower them", base::format_bytes(wanted),
                  base::format_bytes(static_cast<double>(*available))));
}

}  // namespace

SpeedReport measure_speed(const ServedModel& model, const TensorSource& source, const SpeedOptions& options,
                          const LibrarySeconds& library,
                          const std::function<void(const SpeedPoint&)>& on_point) {
  require_memory(model, options);
  Measurement measurement(model, source, options);
  const kernels::StolenTime stolen;
  SpeedReport report{.processor = kernels::processor_name(), .points = {}};
  const auto take = [&](SpeedPoint point) {
    report.points.push_back(std::move(point));
    if (on_point) on_point(report.points.back());
  };
  for (const std::int64_t tokens : options.prefills) take(measurement.prefill(tokens, library));
  for (const std::int64_t batch : options.batches) {
    for (const std::int64_t context : options.contexts) take(measurement.decode(batch, context, library));
  }
  report.stolen_share = stolen.share();
  return report;
}

}  // namespace sextant::engine
