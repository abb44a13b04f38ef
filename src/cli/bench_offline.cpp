#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "cli/bench.h"
#include "engine/speed.h"

namespace sextant::cli {
namespace {

Json samples_json(const engine::Samples& samples, bool more_is_better) {
  return {{"median", samples.median()}, {"best", more_is_better ? samples.most() : samples.least()}};
}

/// The least time that the measured limits allow, of medians: all multiply-adds, all bytes, whichever is
/// more.
double limit_s(const engine::SpeedPoint& point) {
  return std::max(point.operations / point.multiply_adds_per_s.median(),
                  point.bytes / point.read_bytes_per_s.median());
}

Json point_json(const engine::SpeedPoint& point) {
  const double seconds = point.seconds.median();
  Json json;
  if (!point.prefill) json["batch"] = point.batch;
  json[point.prefill ? "tokens" : "context"] = point.context;
  json["step_s"] = samples_json(point.seconds, false);
  json["tokens_per_s"] = point.tokens() / seconds;
  json["operations"] = point.operations;
  json["multiply_adds_per_s"] = samples_json(point.multiply_adds_per_s, true);
  json["read_bytes_per_s"] = samples_json(point.read_bytes_per_s, true);
  json["share_of_multiply_adds"] = point.operations / seconds / point.multiply_adds_per_s.median();
  if (!point.prefill) {
    json["bytes"] = point.bytes;
    json["share_of_read_bandwidth"] = point.bytes / seconds / point.read_bytes_per_s.median();
  }
  json["limit_s"] = limit_s(point);
  json["share_of_limit"] = limit_s(point) / seconds;
  return json;
}

std::string percent(const Json& share) { return fmt::format("{:.0f} %", 100.0 * share.get<double>()); }

std::string prefill_table(const Json& result, const report::Style& style) {
  using report::Align;
  report::Table table(
      {"prefill", "tokens/s", "median", "best", "A GFLOP/s", "of A"},
      {Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  for (const Json& point : result["prefill"]) {
    table.add({base::format_count(point["tokens"].get<std::int64_t>()),
               fmt::format("{:.1f}", point["tokens_per_s"].get<double>()),
               base::format_seconds(point["step_s"]["median"].get<double>()),
               base::format_seconds(point["step_s"]["best"].get<double>()),
               fmt::format("{:.0f}", point["multiply_adds_per_s"]["median"].get<double>() / 1e9),
               percent(point["share_of_multiply_adds"])});
  }
  return table.empty() ? "" : table.text(style) + "\n";
}

std::string decode_table(const Json& result, const report::Style& style) {
  using report::Align;
  report::Table table(
      {"batch", "context", "tokens/s", "median", "best", "GB", "R GB/s", "of R", "of A", "of limit"},
      std::vector<Align>(10, Align::kRight));
  for (const Json& point : result["decode"]) {
    table.add({base::format_count(point["batch"].get<std::int64_t>()),
               base::format_count(point["context"].get<std::int64_t>()),
               fmt::format("{:.1f}", point["tokens_per_s"].get<double>()),
               base::format_seconds(point["step_s"]["median"].get<double>()),
               base::format_seconds(point["step_s"]["best"].get<double>()),
               fmt::format("{:.2f}", point["bytes"].get<double>() / 1e9),
               fmt::format("{:.1f}", point["read_bytes_per_s"]["median"].get<double>() / 1e9),
               percent(point["share_of_read_bandwidth"]), percent(point["share_of_multiply_adds"]),
               percent(point["share_of_limit"])});
  }
  return table.empty() ? "" : table.text(style) + "\n";
}

std::string offline_text(const Json& result, const report::Style& style) {
  return fmt::format(
      "{}\n{}, {} threads, {}, {}; {} repeats in turn with the limits\n\n{}{}"
      "A: multiply-adds in registers. R: reading 2 GiB. Shares are of medians. {:.1f} % of the\n"
      "processor time meanwhile was taken by the host for others.\n",
      result["model"].get<std::string>(), result["processor"].get<std::string>(),
      result["threads"].get<std::int64_t>(), result["isa"].get<std::string>(),
      result["dtype"].get<std::string>(), result["repeats"].get<int>(), prefill_table(result, style),
      decode_table(result, style), 100.0 * result["stolen_share"].get<double>());
}

/// Files with weights, or made-up ones for a shape and for a config.json alone.
struct Source {
  engine::ServedModel model;
  std::unique_ptr<engine::TensorSource> tensors;
};

Source source_of(const std::string& model) {
  if (model.empty()) {
    throw base::UserError({"--model"}, {}, "is missing: give a model's folder, a GGUF file or a shape");
  }
  if (engine::is_shape(model)) return {engine::model_of_shape(model), engine::dummy_tensors()};
  Source source{engine::read_served_model(model), nullptr};
  std::error_code ignored;
  const bool has_weights = engine::is_gguf(model) || std::filesystem::is_directory(model, ignored);
  source.tensors = has_weights ? engine::open_checkpoint(model) : engine::dummy_tensors();
  return source;
}

void require_room(const OfflineFlags& flags, const engine::ServedModel& model) {
  const std::int64_t positions = model.architecture.maximum_positions;
  if (positions == 0) return;
  for (const auto* lengths : {&flags.contexts, &flags.prefills}) {
    for (const std::int64_t length : *lengths) {
      if (length < positions) continue;
      throw base::UserError(
          {lengths == &flags.contexts ? "--context" : "--prefill"}, {},
          fmt::format("{} leaves no room below the model's {} positions", length, positions));
    }
  }
}

}  // namespace

void add_offline_flags(CLI::App& command, OfflineFlags& flags) {
  const auto list = [&](const char* name, std::vector<std::int64_t>& numbers, const char* help) {
    command.add_option(name, numbers, help)
        ->delimiter(',')
        ->type_name("N,...")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  };
  command.add_flag("--offline", flags.offline,
                   "measure the engine in this process instead: --model is a folder, a GGUF file, a "
                   "config.json or a shape such as "
                   "layers=16,hidden=2048,heads=32,kv_heads=8,ffn=8192,vocabulary=128256,tied=true");
  list("--batch", flags.batches, "offline: sequences that decode together (1)");
  list("--context", flags.contexts, "offline: tokens that each has behind it (128,1024)");
  list("--prefill", flags.prefills, "offline: lengths of prompts (those of --context)");
  command.add_option("--threads", flags.threads, "offline: threads (the processors this process may use)")
      ->check(CLI::Range(1, 1024));
  command.add_option("--dtype", flags.dtype, "offline: auto (as stored), bfloat16, float32")
      ->check(CLI::IsMember({"auto", "bfloat16", "float32"}));
  command.add_option("--isa", flags.isa, "offline: auto, scalar, avx2, avx512, amx, amx-model");
  command.add_option("--repeats", flags.repeats, "offline: of every measurement (5)")
      ->check(CLI::Range(1, 1000));
}

int bench_offline(const BenchFlags& shared, const OfflineFlags& flags) {
  const kernels::Isa isa = kernels::parse_isa(flags.isa, "--isa");
  const Source source = source_of(shared.model);
  require_room(flags, source.model);
  engine::SpeedOptions options{
      .cpu = {.isa = isa,
              .type = engine::element_type(flags.dtype, source.model),
              .threads = flags.threads == 0 ? base::default_threads() : flags.threads},
      .prefills = flags.prefills.empty() ? flags.contexts : flags.prefills,
      .batches = flags.batches,
      .contexts = flags.contexts,
      .repeats = flags.repeats};
  const engine::SpeedReport report = engine::measure_speed(source.model, *source.tensors, options);
  Json document = {{"model", shared.model},
                   {"processor", report.processor},
                   {"isa", kernels::name_of(isa)},
                   {"threads", options.cpu.threads},
                   {"dtype", options.cpu.type == kernels::ElementType::kFloat32 ? "float32" : "bfloat16"},
                   {"repeats", flags.repeats},
                   {"stolen_share", report.stolen_share},
                   {"prefill", Json::array()},
                   {"decode", Json::array()}};
  for (const engine::SpeedPoint& point : report.points)
    document[point.prefill ? "prefill" : "decode"].push_back(point_json(point));
  if (!shared.out.empty()) base::write_file(shared.out, document.dump(2) + "\n");
  print(document, shared.json, offline_text);
  return kDone;
}

}  // namespace sextant::cli
