#include "tuner/tune.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "report/measured.h"
#include "report/tuning.h"
#include "tuner/measured_tune.h"
#include "tuner/recorded_inputs.h"
#include "tuner/sweep.h"

namespace sextant::cli {
namespace {

std::atomic<bool> interrupted{false};

/// A line on standard error, drawn again at most ten times a second, only on a terminal.
class ProgressLine {
 public:
  void update(const search::Progress& progress) {
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

/// The first request ends the search in order; the second ends the program, and what watches over trials ends
/// them.
void watch_signals() {
  const auto handler = [](int) {
    if (interrupted.exchange(true)) _exit(kInterrupted);
  };
  std::signal(SIGINT, handler);
  std::signal(SIGTERM, handler);
  // The terminal is gone; under nohup that is ignored, and stays so.
  if (std::signal(SIGHUP, handler) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

int run_projected(const Flags& flags) {
  Json document;
  {
    ProgressLine line;
    document = tuner::tune(
        flags.tune, [&](const search::Progress& progress) { line.update(progress); },
        [] { return interrupted.load(); });
  }
  print(document, flags.json, report::tuning_text);
  if (interrupted) return kInterrupted;
  return document.at("best").empty() ? kAnswerIsNo : kDone;
}

tuner::MeasuredHooks hooks_of(const std::vector<std::string>& arguments) {
  tuner::MeasuredHooks hooks;
  hooks.stop = [] { return interrupted.load(); };
  hooks.say = [](const std::string& line) {
    fmt::print(stderr, "{}\n", line);
    std::fflush(stderr);
  };
  hooks.version = SEXTANT_VERSION;
  hooks.command_line = "sextant tune " + fmt::format("{}", fmt::join(arguments, " "));
  return hooks;
}

int status_of(const Json& document) {
  const std::string reason = document.at("stopped").at("reason");
  if (reason == "interrupted") return kInterrupted;
  if (reason == "outside") return kOutsideFailed;
  return document.at("best").empty() ? kAnswerIsNo : kDone;
}

int run_measured(const Flags& flags) {
  const Json document = tuner::measured_tune(flags.tune, hooks_of(flags.tune.measure.arguments));
  print(document, flags.json, report::measured_text);
  return status_of(document);
}

/// The flags of the recorded run; of this command line those hold that may change on the way.
int run_resumed(const Flags& typed) {
  const std::string folder = typed.tune.measure.resume;
  Flags flags = typed;
  flags.tune = parse_tune(tuner::recorded_arguments(folder));
  flags.tune.measure.resume = folder;
  flags.tune.measure.trials_at_first = tuner::planned_trials(flags.tune.measure);
  if (typed.tune.measure.trials) flags.tune.measure.trials = typed.tune.measure.trials;
  if (typed.tune.measure.minutes) flags.tune.measure.minutes = typed.tune.measure.minutes;
  const Json document = tuner::measured_tune(flags.tune, hooks_of(typed.tune.measure.arguments));
  print(document, flags.json, report::measured_text);
  return status_of(document);
}

int run_replayed(const Flags& typed) {
  const std::string folder = typed.tune.measure.replay;
  const tuner::TuneFlags flags = parse_tune(tuner::recorded_arguments(folder));
  const Json document = tuner::replayed_tune(flags, folder, hooks_of(typed.tune.measure.arguments));
  print(document, typed.json, report::replay_text);
  return document.at("same").get<bool>() ? kDone : kAnswerIsNo;
}

int run(const Flags& flags) {
  watch_signals();
  if (!flags.tune.measure.resume.empty()) return run_resumed(flags);
  if (!flags.tune.measure.replay.empty()) return run_replayed(flags);
  if (tuner::wants_trials(flags.tune)) return run_measured(flags);
  if (flags.tune.planner == "sweep") {
    const Json document = tuner::projected_sweep(flags.tune);
    print(document, flags.json, report::sweep_text);
    return document.at("effects").empty() ? kAnswerIsNo : kDone;
  }
  return run_projected(flags);
}

void add_space_flags(CLI::App& command, tuner::TuneFlags& tune) {
  command.add_option("--space", tune.space.space, "named space or space file (default: case-study)");
  command.add_option("--pin", tune.space.pins, "axis=value: keep an axis at one value, repeatable")
      ->type_name("AXIS=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command.add_option("--open", tune.space.opens, "turn one more axis, or all of them")
      ->type_name("AXIS|all")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command.add_flag("--hypothetical", tune.space.hypothetical,
                   "admit schedules that the backend cannot launch");
}

void add_measure_flags(CLI::App& command, tuner::MeasureFlags& measure) {
  command
      .add_option("--command", measure.command,
                  "shell command of a trial; {config} stands for its launch file")
      ->type_name("TEMPLATE");
  command.add_option("--sbatch", measure.sbatch, "arguments of sbatch, with --evaluator slurm")
      ->type_name("ARGUMENTS");
  command.add_option("--trials", measure.trials, "how many trials to run (default: 30)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  command.add_option("--minutes", measure.minutes, "for all trials together (default: no limit)")
      ->type_name("T");
  command.add_option("--trial-minutes", measure.trial_minutes, "for one trial")
      ->type_name("T")
      ->capture_default_str();
  command.add_option("--hang-minutes", measure.hang_minutes, "a trial that makes no step for so long hangs")
      ->type_name("T")
      ->capture_default_str();
  command.add_option("--steps", measure.steps, "end a trial after so many steps (default: it ends itself)")
      ->type_name("N")
      ->check(CLI::Range(3, 1'000'000'000));
}

void add_llm_flags(CLI::App& command, tuner::LlmFlags& llm) {
  const auto repeatable = [](CLI::Option* option) {
    option->expected(1)->allow_extra_args(false)->take_all();
  };
  repeatable(
      command
          .add_option("--llm", llm.models,
                      "language model that proposes trials; repeat for models that step in when it fails")
          ->type_name("PROVIDER/MODEL"));
  repeatable(command.add_option("--hint", llm.hints, "what the model should know, in your words; repeatable")
                 ->type_name("TEXT"));
  repeatable(command
                 .add_option("--learn-from", llm.learn_from,
                             "earlier runs to show the model, their --out folders or a folder of several: "
                             "the best by measured gain; repeatable")
                 ->type_name("DIR"));
  command
      .add_option("--llm-tokens", llm.tokens,
                  "the most tokens that it may be charged with (default: no limit)")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000'000}));
  command.add_option("--llm-usd", llm.usd, "the most US dollars, likewise")->type_name("X");
  command.add_option("--llm-prices", llm.prices, "prices of models that Sextant has none of")
      ->type_name("FILE");
}

/// All that a recorded run may have been given.
void add_run_flags(CLI::App& command, Flags& flags) {
  tuner::TuneFlags& tune = flags.tune;
  add_input_flags(command, tune.inputs);
  add_space_flags(command, tune);
  command.add_option("--planner", tune.planner, "auto, exhaustive; with trials also sweep, surrogate")
      ->capture_default_str();
  command
      .add_option("--evaluator", tune.evaluator,
                  "projection; profile: with --profile; command or slurm: run each candidate")
      ->capture_default_str();
  add_measure_flags(command, tune.measure);
  add_llm_flags(command, tune.llm);
  command.add_option("--objective", tune.objective, "what to maximise")->capture_default_str();
  command.add_option("--top", tune.top, "how many of the best layouts to show")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  command.add_option("--memory-margin", tune.memory_margin,
                     "share of memory to leave free (default: the cluster's; with trials 0)");
  command.add_option("--threads", tune.threads, "threads (default: all processors)")
      ->check(CLI::Range(1, 1024));
  command.add_option("--seed", tune.seed, "random seed; no planner draws from it yet");
  command.add_option("--out", tune.out, "folder for the run: result.json, inputs, launchable files, trials");
  add_json_flag(command, flags.json);
}

/// What belongs to the recorded run cannot be given anew.
void only_with(CLI::App& command, CLI::Option& option) {
  for (CLI::Option* other : command.get_options()) {
    const std::string name = other->get_name();
    if (other == &option || name == "--help" || name == "--json" || name == "--trials" || name == "--minutes")
      continue;
    option.excludes(other);
  }
}

}  // namespace

tuner::TuneFlags parse_tune(const std::vector<std::string>& arguments) {
  Flags flags;
  CLI::App command;
  add_run_flags(command, flags);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    command.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    throw base::UserError(
        fmt::format("the recorded run's arguments are not known to this version: {}; report "
                    "on it with the version that wrote it",
                    error.what()));
  }
  flags.tune.measure.arguments = arguments;
  return flags.tune;
}

void add_tune(CLI::App& app, Action& action, const std::vector<std::string>& arguments) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("tune", "Find the fastest layout of a workload on a cluster");
  command->footer(
      "Example: sextant tune --workload data/examples/mixtral_8x22b_mi355x.yaml --cluster mi355x:4x8 --out "
      "runs/first\n"
      "Measured: … --evaluator command --command './train.sh {config}' --trials 30 --out runs/measured\n"
      "Exit status 1 when no legal layout fits, or none has run.");
  add_run_flags(*command, *flags);
  only_with(*command,
            *command
                 ->add_option("--resume", flags->tune.measure.resume,
                              "go on with the run in this folder; --trials and --minutes may be new")
                 ->type_name("DIR"));
  only_with(*command, *command
                           ->add_option("--replay", flags->tune.measure.replay,
                                        "take the decisions of the run in this folder again, running nothing")
                           ->type_name("DIR"));
  command->callback([flags, &action, &arguments] {
    const auto own = std::ranges::find(arguments, "tune");
    flags->tune.measure.arguments.assign(own == arguments.end() ? own : own + 1, arguments.end());
    flags->tune.product_version = SEXTANT_VERSION;
    action = [flags] { return run(*flags); };
  });
}

}  // namespace sextant::cli
