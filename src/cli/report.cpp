#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/command.h"
#include "report/measured.h"
#include "tuner/measured_tune.h"
#include "tuner/recorded_inputs.h"

namespace sextant::cli {
namespace {

struct Flags {
  std::string run;
  std::string markdown;
  std::string csv;
  std::string tables;
  bool json = false;
};

void write(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
  } else {
    base::write_file(path, text);
  }
}

int run(const Flags& flags) {
  const Json document = tuner::recorded_tune(parse_tune(tuner::recorded_arguments(flags.run)), flags.run);
  if (!flags.markdown.empty()) write(flags.markdown, report::measured_markdown(document));
  if (!flags.csv.empty()) write(flags.csv, report::measured_csv(document));
  if (!flags.tables.empty()) tuner::write_tables(flags.run, flags.tables);
  const bool written = !flags.markdown.empty() || !flags.csv.empty() || !flags.tables.empty();
  if (flags.json || !written) print(document, flags.json, report::measured_text);
  return kDone;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("report", "Show what a measured run did, also while it runs");
  command->footer("Example: sextant report runs/measured --markdown report.md");
  command->add_option("RUN", flags->run, "folder of the run: what `tune` had as --out")->required();
  command->add_option("--markdown", flags->markdown, "write the report as a page; - is standard output")
      ->type_name("FILE");
  command->add_option("--csv", flags->csv, "write one line a trial; - is standard output")->type_name("FILE");
  command->add_option("--tables", flags->tables, "write every record of the journal, as CSV tables and JSON")
      ->type_name("DIR");
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace sextant::cli
