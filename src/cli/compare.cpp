#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "report/planning.h"
#include "tuner/plan.h"

namespace sextant::cli {
namespace {

struct Flags {
  std::vector<std::string> files;
  tuner::InputFlags inputs;
  std::vector<std::string> settings_b;
  bool hypothetical = false;
  bool json = false;
};

/// A and B: two files with the same flags, or one workload with and without the --set-b keys.
std::pair<tuner::InputFlags, tuner::InputFlags> sides(const Flags& flags) {
  tuner::InputFlags a = flags.inputs;
  if (!flags.files.empty()) a.workload = flags.files.front();
  tuner::InputFlags b = a;
  if (flags.files.size() == 2) b.workload = flags.files.back();
  b.settings.insert(b.settings.end(), flags.settings_b.begin(), flags.settings_b.end());
  if (flags.files.size() < 2 && flags.settings_b.empty()) {
    throw base::UserError(
        "compare needs two workload files, or one and --set-b key=value for what B changes");
  }
  return {a, b};
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("compare", "Compare two layouts term by term");
  command->footer(
      "Example: sextant compare data/examples/mixtral_8x22b_mi355x.yaml --cluster mi355x:4x8 --set-b vpp=1");
  command->add_option("workloads", flags->files, "workload A, or A and B")->expected(0, 2);
  add_input_flags(*command, flags->inputs);
  command->add_option("--set-b", flags->settings_b, "key=value that only B changes, repeatable")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  command->add_flag("--hypothetical", flags->hypothetical, "admit schedules that the backend cannot launch");
  add_json_flag(*command, flags->json);
  command->callback([flags, &action] {
    action = [flags] {
      const auto [a, b] = sides(*flags);
      const Json document = tuner::compare(a, b, flags->hypothetical);
      print(document, flags->json, report::comparison_text);
      return document.at("a").at("legal").get<bool>() && document.at("b").at("legal").get<bool>()
                 ? kDone
                 : kAnswerIsNo;
    };
  });
}

}  // namespace sextant::cli
