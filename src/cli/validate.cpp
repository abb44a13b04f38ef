#include "tuner/validate.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "report/tuning.h"

namespace sextant::cli {

void add_validate(CLI::App& app, Action& action) {
  struct Flags {
    tuner::ValidateFlags validate;
    std::optional<double> fail_above;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  tuner::ValidateFlags& validate = flags->validate;
  CLI::App* command = app.add_subcommand("validate", "Hold projections against measured runs");
  command->footer(
      "Example: sextant validate --table data/calibration/measured/training_measured.csv --fail-above 20\n"
      "Columns of a table: docs/reference/measured_tables.md. Exit status 1 when the mean absolute error of "
      "time\n"
      "(of memory, where no row has a time) is above --fail-above, or when no row can be projected.");
  command->add_option("--table", validate.tables, "CSV of measured runs, repeatable")
      ->required()
      ->type_name("CSV")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--cluster", validate.cluster,
                      "file or name: the accelerator of rows that name none, or that name this one");
  command->add_option("--fail-above", flags->fail_above, "exit 1 when the mean absolute error is above this")
      ->type_name("PERCENT")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--markdown", validate.markdown, "write the errors of time as a page")
      ->type_name("FILE");
  command
      ->add_option("--record", validate.record,
                   "of `calibrate --record`: errors of rows left out, for the page")
      ->type_name("FOLDER");
  command->add_option("--pairs", validate.pairs, "CSV of published pairs, for the page")->type_name("CSV");
  command->add_option("--memory-markdown", validate.memory_markdown, "write the errors of memory as a page")
      ->type_name("FILE");
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] {
    action = [flags] {
      const Json document = tuner::validate(flags->validate);
      print(document, flags->json, report::validation_text);
      if (!tuner::any_projected(document)) return kAnswerIsNo;
      return flags->fail_above && !tuner::within(document, *flags->fail_above) ? kAnswerIsNo : kDone;
    };
  });
}

}  // namespace sextant::cli
