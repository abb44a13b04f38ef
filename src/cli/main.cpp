#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <exception>

#include "base/error.h"
#include "cli/command.h"

namespace sextant::cli {
namespace {

int run(int argc, char** argv) {
  CLI::App app("Finds the fastest way to train a large language model on a GPU cluster, and shows why.",
               "sextant");
  app.set_version_flag("--version", SEXTANT_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Example: sextant tune --workload data/examples/mixtral_8x22b_mi355x.yaml --cluster mi355x:4x8\n"
      "Each command has its own --help with an example.");
  Action action;
  add_tune(app, action);
  add_project(app, action);
  add_compare(app, action);
  add_inspect(app, action);
  add_list(app, action);
  add_validate(app, action);
  add_calibrate(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kWrongInput;
  }
  return action();
}

}  // namespace
}  // namespace sextant::cli

int main(int argc, char** argv) {
  try {
    return sextant::cli::run(argc, argv);
  } catch (const sextant::base::UserError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return sextant::cli::kWrongInput;
  } catch (const sextant::base::OutsideError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return sextant::cli::kOutsideFailed;
  } catch (const std::exception& error) {
    fmt::print(stderr, "internal error: {}\n", error.what());
    return sextant::cli::kOutsideFailed;
  }
}
