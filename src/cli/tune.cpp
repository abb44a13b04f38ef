#include "tuner/tune.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/command.h"
#include "report/tuning.h"

namespace sextant::cli {
namespace {

constexpr int kInterrupted = 130;
std::atomic<bool> interrupted{false};

/// A line on standard error, drawn again at most ten times a second, only on a terminal.
class ProgressLine {
 public:
  bool update(const search::Progress& progress) {
    using Clock = std::chrono::steady_clock;
    if (isatty(STDERR_FILENO) != 0 && Clock::now() - drawn_ > std::chrono::milliseconds(100)) {
      drawn_ = Clock::now();
      const double elapsed_s = std::chrono::duration<double>(drawn_ - start_).count();
      const double share = progress.total > 0 ? progress.done / progress.total : 0.0;
      const double left_s = share > 0 ? elapsed_s / share - elapsed_s : 0.0;
      fmt::print(stderr, "\r  {:5.1f} %  {:.0f}/s  best {:.0f} tokens/s/GPU  {} left \x1b[K", share * 100.0,
                 progress.done / elapsed_s, progress.best_objective, base::format_seconds(left_s));
      shown_ = true;
    }
    return !interrupted;
  }
  ~ProgressLine() {
    if (shown_) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point drawn_ = start_;
  bool shown_ = false;
};

struct Flags {
  tuner::TuneFlags tune;
  bool json = false;
};

int run(const Flags& flags) {
  std::signal(SIGINT, [](int) { interrupted = true; });
  Json document;
  {
    ProgressLine line;
    document =
        tuner::tune(flags.tune, [&](const search::Progress& progress) { return line.update(progress); });
  }
  print(document, flags.json, report::tuning_text);
  if (interrupted) return kInterrupted;
  return document.at("best").empty() ? kAnswerIsNo : kDone;
}

}  // namespace

void add_tune(CLI::App& app, Action& action) {
  auto flags = std::make_shared<Flags>();
  tuner::TuneFlags& tune = flags->tune;
  CLI::App* command = app.add_subcommand("tune", "Find the fastest layout of a workload on a cluster");
  command->footer(
      "Example: sextant tune --workload data/examples/mixtral_8x22b_mi355x.yaml --cluster mi355x:4x8 --out "
      "runs/first\n"
      "Exit status 1 when no legal layout fits.");
  add_input_flags(*command, tune.inputs);
  command->add_option("--space", tune.space.space, "named space or space file (default: case-study)");
  command->add_option("--pin", tune.space.pins, "axis=value: keep an axis at one value, repeatable")
      ->type_name("AXIS=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--open", tune.space.opens, "turn one more axis, or all of them")
      ->type_name("AXIS|all")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command->add_flag("--hypothetical", tune.space.hypothetical,
                    "admit schedules that the backend cannot launch");
  command->add_option("--planner", tune.planner, "auto or exhaustive")->capture_default_str();
  command->add_option("--evaluator", tune.evaluator, "projection")->capture_default_str();
  command->add_option("--objective", tune.objective, "what to maximise")->capture_default_str();
  command->add_option("--top", tune.top, "how many of the best layouts to show")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--memory-margin", tune.memory_margin,
                      "share of memory to leave free (default: the cluster's)");
  command->add_option("--threads", tune.threads, "threads (default: all processors)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--seed", tune.seed, "random seed; the exhaustive planner uses none");
  command->add_option("--out", tune.out, "folder for result.json, the inputs and launchable files");
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace sextant::cli
