#include "cli/bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "bench/measure.h"
#include "cli/command.h"
#include "config/document.h"

namespace sextant::cli {
namespace {

struct Flags {
  BenchFlags shared;
  OfflineFlags offline;
  bench::Settings settings;
  std::string endpoint = "completions";
  std::string dialect = "inferencex";
  std::string prompt_form = "auto";
  std::vector<std::string> objectives;
  std::string percents = "90,99,99.9";
  std::string api_key_variable;
  bool stops_at_end_ids = false;
};

std::atomic<bool> measuring{false};  ///< there is something to print
std::atomic<bool> interrupted{false};

base::UserError fault(const std::string& flag, const std::string& what) { return {{flag}, {}, what}; }

double number_of(const std::string& text, const std::string& flag) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0' && std::isfinite(value) && value >= 0) return value;
  throw fault(flag, fmt::format("\"{}\" is no number from 0 on", text));
}

/// "ttft:200,tpot:50", in milliseconds.
load::Objectives objectives_of(const std::vector<std::string>& lists) {
  load::Objectives objectives;
  for (const std::string& list : lists) {
    for (const std::string& pair : base::split(list, ',')) {
      const std::size_t colon = pair.find(':');
      const std::string name = pair.substr(0, colon);
      std::optional<double>* limit = name == "ttft"   ? &objectives.ttft_s
                                     : name == "tpot" ? &objectives.tpot_s
                                     : name == "e2el" ? &objectives.e2el_s
                                                      : nullptr;
      if (limit == nullptr || colon == std::string::npos) {
        throw fault("--slo", fmt::format("\"{}\" is no objective: write ttft:MS, tpot:MS or e2el:MS", pair));
      }
      *limit = number_of(pair.substr(colon + 1), "--slo") / 1000.0;
    }
  }
  return objectives;
}

std::vector<double> percents_of(const std::string& list) {
  std::vector<double> percents;
  for (const std::string& text : base::split(list, ',')) {
    percents.push_back(number_of(text, "--percentiles"));
    if (percents.back() > 100) throw fault("--percentiles", fmt::format("{} is above 100", text));
  }
  return percents;
}

bench::PromptForm form_named(const std::string& name) {
  if (name == "text") return bench::PromptForm::kText;
  if (name == "token-ids") return bench::PromptForm::kTokenIds;
  return name == "words" ? bench::PromptForm::kWords : bench::PromptForm::kAuto;
}

http::Secret api_key(const std::string& variable) {
  if (variable.empty()) return {};
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr || *value == '\0') {
    throw fault("--api-key-env", fmt::format("the environment has no variable {}", variable));
  }
  return http::Secret(value);
}

bench::Settings settings_of(const Flags& flags) {
  bench::Settings settings = flags.settings;
  if (!settings.target.base_url.starts_with("http://") && !settings.target.base_url.starts_with("https://")) {
    throw fault("--base-url",
                settings.target.base_url.empty()
                    ? std::string("is missing: give the address of the server, such as http://127.0.0.1:8000")
                    : fmt::format("\"{}\" is no address: it must begin with http:// or https://",
                                  settings.target.base_url));
  }
  if (settings.input_tokens == 0) throw fault("--input-len", "is missing: give the tokens of a prompt");
  if (settings.output_tokens == 0) throw fault("--output-len", "is missing: give the tokens of an answer");
  if (!settings.target.extra_body.empty()) {
    config::require_mapping(config::parse_json(settings.target.extra_body, "--extra-body"));
  }
  settings.target.model = flags.shared.model;
  settings.target.endpoint =
      flags.endpoint == "chat" ? bench::Endpoint::kChat : bench::Endpoint::kCompletions;
  settings.target.api_key = api_key(flags.api_key_variable);
  settings.target.ignore_eos = !flags.stops_at_end_ids;
  settings.dialect = load::parse_dialect(flags.dialect, "--range-dialect");
  settings.form = form_named(flags.prompt_form);
  settings.objectives = objectives_of(flags.objectives);
  settings.percents = percents_of(flags.percents);
  return settings;
}

/// The first request ends the run in order, the second the program; before the run, the first does.
void watch_signals() {
  const auto handler = [](int) {
    if (interrupted.exchange(true) || !measuring) _exit(kInterrupted);
  };
  std::signal(SIGINT, handler);
  std::signal(SIGTERM, handler);
}

/// A line on standard error, drawn again at most ten times a second, only on a terminal.
class ProgressLine {
 public:
  void update(const bench::Progress& progress) {
    using Clock = std::chrono::steady_clock;
    if (isatty(STDERR_FILENO) == 0 || Clock::now() - drawn_ < std::chrono::milliseconds(90)) return;
    drawn_ = Clock::now();
    shown_ = true;
    if (progress.phase == bench::Phase::kPrompts) {
      fmt::print(stderr, "\r  making prompts: {}/{} \x1b[K", progress.done, progress.total);
      return;
    }
    const auto done = static_cast<double>(progress.done);
    const double left = static_cast<double>(progress.total) - done;
    fmt::print(stderr, "\r  {}{}/{} done  {} under way  {}{:.0f} chunks/s  {} left \x1b[K",
               progress.phase == bench::Phase::kWarmUp ? "warming up: " : "", progress.done, progress.total,
               progress.under_way, progress.failed == 0 ? "" : fmt::format("{} failed  ", progress.failed),
               progress.elapsed_s > 0 ? static_cast<double>(progress.chunks) / progress.elapsed_s : 0.0,
               progress.done == 0 ? "?" : base::format_seconds(progress.elapsed_s * left / done));
  }
  ~ProgressLine() {
    if (shown_) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  std::chrono::steady_clock::time_point drawn_{};
  bool shown_ = false;
};

int bench_server(const Flags& flags) {
  const bench::Settings settings = settings_of(flags);
  watch_signals();
  Json document;
  {
    ProgressLine line;
    document = bench::measure(
        settings,
        [&](const bench::Progress& progress) {
          if (progress.phase != bench::Phase::kPrompts) measuring = true;
          line.update(progress);
        },
        [] { return interrupted.load(); });
  }
  if (!flags.shared.out.empty()) base::write_file(flags.shared.out, document.dump(2) + "\n");
  print(document, flags.shared.json, bench_text);
  if (document["interrupted"].get<bool>()) return kInterrupted;
  if (document["completed"].get<std::int64_t>() > 0) return kDone;
  throw base::OutsideError(
      fmt::format("{}: no request was answered in full; see the errors", settings.target.base_url));
}

/// Which way of measuring was asked for: one line each.
int dispatch(const Flags& flags) {
  if (flags.offline.offline) return bench_offline(flags.shared, flags.offline);
  return bench_server(flags);
}

void add_workload_flags(CLI::App& command, Flags& flags) {
  bench::Settings& settings = flags.settings;
  command.add_option("--input-len", settings.input_tokens, "tokens of a prompt")->check(CLI::PositiveNumber);
  command.add_option("--output-len", settings.output_tokens, "tokens of an answer")
      ->check(CLI::PositiveNumber);
  command.add_option("--range-ratio", settings.range_ratio,
                     "lengths vary by this ratio, read as --range-dialect says (default: they do not vary)");
  command
      .add_option("--range-dialect", flags.dialect,
                  "inferencex (default) or sglang: lengths from r*L to L; vllm: from (1-r)*L to (1+r)*L")
      ->type_name("NAME");
  command.add_option("--concurrency", settings.concurrency, "requests under way, at most with --rate")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--rate", settings.rate_per_s, "requests a second, at random times (default: no waiting)")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--burstiness", settings.burstiness,
                  "with --rate: 1 is a Poisson process (default), less comes in bursts")
      ->check(CLI::PositiveNumber);
  command.add_option("--prompts", settings.requests, "requests (default: ten for each of --concurrency)")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--warmups", settings.warmups,
                  "requests before, that do not count (default: two for each of --concurrency)")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--seed", settings.seed, "same seed, same lengths, prompts and arrivals (0)");
}

void add_prompt_flags(CLI::App& command, Flags& flags) {
  bench::Settings& settings = flags.settings;
  command
      .add_option(
          "--tokenizer", settings.tokenizer,
          "the model's tokenizer.json, its folder, or a GGUF file: makes prompts text of exact length")
      ->type_name("PATH");
  command
      .add_option("--prompt-form", flags.prompt_form,
                  "text, token-ids or words (default: text with --tokenizer, else token ids, in chats words)")
      ->check(CLI::IsMember({"auto", "text", "token-ids", "words"}))
      ->type_name("NAME");
  command
      .add_option("--vocab-size", settings.vocabulary,
                  "without --tokenizer: token ids are below this (256, which every model has)")
      ->check(CLI::PositiveNumber);
  command.add_flag("--no-ignore-eos", flags.stops_at_end_ids,
                   "let answers end early; by default ignore_eos is sent with every request");
  command
      .add_option("--extra-body", settings.target.extra_body,
                  "further fields of every request, a JSON object")
      ->type_name("JSON");
}

void add_server_flags(CLI::App& command, Flags& flags) {
  bench::Settings& settings = flags.settings;
  command.add_option("--base-url", settings.target.base_url, "address of the server, with or without /v1")
      ->type_name("URL");
  command.add_option("--model", flags.shared.model,
                     "the model's name at the server (default: the first that it lists)");
  command.add_option("--endpoint", flags.endpoint, "completions (default) or chat")
      ->check(CLI::IsMember({"completions", "chat"}))
      ->type_name("NAME");
  command.add_option("--api-key-env", flags.api_key_variable, "environment variable that holds the API key")
      ->type_name("VAR");
  command.add_option("--timeout", settings.target.timeout_s, "seconds for one answer (21600)")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--wait-ready", settings.wait_ready_s,
                  "wait for the server to be ready, at most so many seconds (0)")
      ->check(CLI::NonNegativeNumber);
}

void add_result_flags(CLI::App& command, Flags& flags) {
  command
      .add_option("--slo", flags.objectives,
                  "goodput counts requests within these limits: ttft:MS,tpot:MS,e2el:MS")
      ->type_name("NAME:MS,...")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command.add_option("--percentiles", flags.percents, "that are reported (90,99,99.9)")->type_name("P,...");
  command.add_option("--gpus", flags.settings.gpus, "GPUs of the server, for throughputs per GPU")
      ->check(CLI::PositiveNumber);
  command.add_flag("--detailed", flags.settings.detailed, "with each request's figures in the JSON document");
  command.add_option("--out", flags.shared.out, "write the JSON document to this file")->type_name("FILE");
  add_json_flag(command, flags.shared.json);
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("bench", "How fast does a server answer, and how many at once?");
  command->footer(
      "Example: sextant bench --base-url http://127.0.0.1:8000 --model llama --tokenizer llama_folder\n"
      "                       --input-len 1024 --output-len 128 --range-ratio 0.8 --concurrency 16\n"
      "Any server with the OpenAI API can be measured. Workload, metrics and names of the JSON document are\n"
      "those of InferenceX. Ctrl-C prints what was measured until then. Exit status 3 when the server "
      "cannot\n"
      "be reached or answers nothing.");
  add_server_flags(*command, *flags);
  add_workload_flags(*command, *flags);
  add_prompt_flags(*command, *flags);
  add_result_flags(*command, *flags);
  add_offline_flags(*command, flags->offline);
  command->callback([flags, &action] { action = [flags] { return dispatch(*flags); }; });
}

}  // namespace sextant::cli
