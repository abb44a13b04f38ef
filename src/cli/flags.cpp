#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.h"

namespace sextant::cli {

void add_input_flags(CLI::App& command, tuner::InputFlags& flags) {
  command.add_option("--workload", flags.workload,
                     "workload file: Primus YAML, Megatron-LM argument list, or Sextant's short YAML");
  command.add_option("--model", flags.model,
                     "model where no workload exists: config.json, its folder, or a name");
  command.add_option("--cluster", flags.cluster,
                     "cluster file, or a name such as mi355x:4x8 (nodes x GPUs a node)");
  command.add_option("--primus-root", flags.primus_root,
                     "folder that holds primus/configs (default: the first such ancestor of the workload)");
  command.add_option("--profile", flags.profile, "measured layer times, in the place of the cost model's")
      ->type_name("FILE");
  command.add_option("--backend", flags.backend,
                     "NAME[@VERSION], e.g. megatron-core@0.15 (default: the workload's)");
  command
      .add_option("--set", flags.settings,
                  "key=value, repeatable: workload keys, short names (tp, mbs) or cluster keys")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
}

void add_json_flag(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "print one JSON document on standard output");
}

void print(const Json& document, bool json, std::string (*text)(const Json&, const report::Style&)) {
  if (json) {
    fmt::print("{}\n", document.dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    fmt::print("{}", text(document, report::terminal_style()));
  }
}

}  // namespace sextant::cli
