#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "report/planning.h"
#include "tuner/plan.h"

namespace sextant::cli {

void add_inspect(CLI::App& app, Action& action) {
  struct Flags {
    std::string file;
    tuner::InputFlags inputs;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("inspect", "Show what a model, workload or cluster says after resolution");
  command->footer("Example: sextant inspect llama-3.1-8b");
  command->add_option("file", flags->file, "file, folder or catalogue name")->required();
  add_input_flags(*command, flags->inputs);
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] {
    action = [flags] {
      print(tuner::inspect(flags->file, flags->inputs), flags->json, report::inspection_text);
      return kDone;
    };
  });
}

}  // namespace sextant::cli
