#include "tuner/schedule.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "report/schedule_svg.h"
#include "report/schedule_text.h"

namespace sextant::cli {
namespace {

struct Flags {
  tuner::ScheduleFlags schedule;
  std::optional<std::string> svg;
  int width = 0;
  bool ascii = false;
  bool json = false;
};

int run(const Flags& flags) {
  if (flags.svg && flags.svg->empty()) throw base::UserError({"--svg"}, {}, "the name of the file is empty");
  const tuner::Schedule answer = tuner::schedule(tuner::read_schedule_flags(flags.schedule));
  const Json document = tuner::schedule_document(answer);
  if (!answer.refusal && flags.svg) {
    base::write_file(*flags.svg,
                     report::schedule_svg(document, answer.operations, answer.request.time_axis_s));
  }
  if (flags.json) {
    fmt::print("{}", tuner::schedule_json(answer));
  } else {
    report::Style style = report::terminal_style();
    if (flags.width > 0) style.width = flags.width;
    const bool ascii = flags.ascii || !report::locale_is_utf8();
    fmt::print("{}", report::schedule_text(document, answer.operations, ascii, style));
  }
  return answer.refusal ? kAnswerIsNo : kDone;
}

void add_shape_flags(CLI::App& command, tuner::ScheduleFlags& flags) {
  command
      .add_option("--algorithm", flags.algorithm,
                  "schedule, by its name or an alias (sextant list schedules)")
      ->type_name("NAME")
      ->required();
  command.add_option("--stages", flags.stages, "pipeline stages")->type_name("P")->required();
  command.add_option("--microbatches", flags.microbatches, "micro-batches of a step")
      ->type_name("M")
      ->required();
  command
      .add_option("--chunks", flags.chunks,
                  "chunks a stage: required for interleaved; 2 for V-shaped schedules, 1 for others")
      ->type_name("V");
  command
      .add_option("--group", flags.group,
                  "micro-batches a chunk takes in a row, interleaved only (default: P)")
      ->type_name("N");
  command.add_flag("--as-launched", flags.as_launched,
                   "the fixed order that frameworks launch, even where another one suits these times better");
  command
      .add_option("--max-live", flags.max_live,
                  "most micro-batches alive on a stage: one value, or P of them")
      ->type_name("N,...");
}

void add_time_flags(CLI::App& command, tuner::ScheduleFlags& flags) {
  command
      .add_option(
          "--forward", flags.forward,
          "time of a forward (default 1): one value or P are of whole stages, P*V of chunks, stage by stage")
      ->type_name("S,...");
  command
      .add_option("--backward-input", flags.backward_input, "time of an input gradient, likewise (default 1)")
      ->type_name("S,...");
  command
      .add_option("--backward-weight", flags.backward_weight,
                  "time of a weight gradient, likewise (default 1)")
      ->type_name("S,...");
  command.add_option("--send", flags.send, "time of a send between stages (default 0)")->type_name("S");
  command
      .add_option("--send-bytes", flags.send_bytes, "instead of --send: bytes of a send, with --bandwidth")
      ->type_name("B");
  command.add_option("--bandwidth", flags.bandwidth, "bandwidth of a link between stages")
      ->type_name("B_PER_S");
  command.add_option("--send-latency", flags.send_latency, "added to each send of --send-bytes")
      ->type_name("S");
  command.add_flag("--no-overlap", flags.no_overlap, "a stage waits while it sends");
}

}  // namespace

void add_schedule(CLI::App& app, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("schedule", "Show a pipeline schedule: times, bubble, live micro-batches");
  command->footer(
      "Example: sextant schedule --algorithm interleaved --stages 4 --microbatches 8 --chunks 2 --svg "
      "timeline.svg\n"
      "Exit status 1 when the algorithm cannot run this shape.");
  add_shape_flags(*command, flags->schedule);
  add_time_flags(*command, flags->schedule);
  command->add_option("--svg", flags->svg, "write the timeline as a picture")->type_name("FILE");
  command
      ->add_option("--time-axis", flags->schedule.time_axis,
                   "where the picture's time axis ends, for several on one scale")
      ->type_name("S");
  command->add_option("--width", flags->width, "columns of the drawing (default: the terminal's)")
      ->check(CLI::Range(60, 10'000));
  command->add_flag("--ascii", flags->ascii, "draw in ASCII, as where the locale is not UTF-8");
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace sextant::cli
