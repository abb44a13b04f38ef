#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "report/planning.h"
#include "tuner/plan.h"

namespace sextant::cli {

void add_list(CLI::App& app, Action& action) {
  struct Flags {
    std::string what;
    std::string backend;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("list", "List known models, clusters, schedules or rules");
  command->footer("Example: sextant list rules --backend primus");
  command->add_option("what", flags->what, "models, clusters, schedules or rules")->required();
  command->add_option("--backend", flags->backend, "rules and schedules of this backend");
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] {
    action = [flags] {
      print(tuner::list(flags->what, flags->backend), flags->json, report::list_text);
      return kDone;
    };
  });
}

}  // namespace sextant::cli
