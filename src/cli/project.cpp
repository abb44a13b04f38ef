#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "report/planning.h"
#include "tuner/plan.h"

namespace sextant::cli {

void add_project(CLI::App& app, Action& action) {
  struct Flags {
    tuner::InputFlags inputs;
    bool hypothetical = false;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("project", "Project memory, time and throughput of one layout");
  command->footer(
      "Example: sextant project --workload data/examples/mixtral_8x22b_mi355x.yaml --cluster mi355x:4x8 "
      "--set mbs=2\n"
      "Exit status 1 when the layout is illegal or does not fit.");
  add_input_flags(*command, flags->inputs);
  command->add_flag("--hypothetical", flags->hypothetical, "admit schedules that the backend cannot launch");
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] {
    action = [flags] {
      const Json document = tuner::project(flags->inputs, flags->hypothetical);
      print(document, flags->json, report::projection_text);
      const bool fits = document.at("legal").get<bool>() && document.at("memory").at("fits").get<bool>();
      return fits ? kDone : kAnswerIsNo;
    };
  });
}

}  // namespace sextant::cli
