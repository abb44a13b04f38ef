#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <system_error>

#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/command.h"

namespace sextant::cli {
namespace {

void print_fault(const char* kind, const std::string& message) {
  fmt::print(stderr, "{}: {}\n", kind, base::printable(message));
}

/// A fault in the arguments, with the names nearest to a word that nothing expects.
std::string argument_fault(const CLI::App* app, const CLI::Error& error) {
  const std::vector<const CLI::App*> commands = app->get_subcommands({});
  std::vector<std::string> names;
  const CLI::App* chosen = nullptr;
  for (const CLI::App* command : commands) {
    names.push_back(command->get_name());
    if (command->parsed()) chosen = command;
  }
  if (chosen != nullptr) {
    names.clear();
    for (const CLI::Option* option : chosen->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  const std::vector<std::string> unexpected = app->remaining(true);
  const std::string hint = unexpected.empty() ? "" : base::did_you_mean(unexpected.front(), names);
  return fmt::format("error: {}{}\nRun `sextant{}{} --help` for the arguments.\n",
                     base::printable(error.what()), base::printable(hint), chosen == nullptr ? "" : " ",
                     chosen == nullptr ? "" : chosen->get_name());
}

int run(int argc, char** argv) {
  CLI::App app("Finds the fastest way to train a large language model on a GPU cluster, and shows why.",
               "sextant");
  app.set_version_flag("--version", SEXTANT_VERSION);
  app.require_subcommand(1);
  app.failure_message(argument_fault);
  app.footer(
      "Example: sextant tune --workload data/examples/mixtral_8x22b_mi355x.yaml --cluster mi355x:4x8\n"
      "Each command has its own --help with an example.");
  Action action;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  add_tune(app, action, arguments);
  add_project(app, action);
  add_compare(app, action);
  add_inspect(app, action);
  add_list(app, action);
  add_schedule(app, action);
  add_generate(app, action);
  add_serve(app, action);
  add_bench(app, action);
  add_report(app, action);
  add_validate(app, action);
  add_calibrate(app, action);
  add_llm(app, action);
  add_tokenize(app, action);
  add_chat_template(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kWrongInput;
  }
  return action();
}

/// Standard output is buffered: what a full disk refuses shows only when it is flushed, and must not pass as
/// done.
int flushed(int status) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  throw base::OutsideError(fmt::format("standard output: cannot be written: {}", std::strerror(errno)));
}

}  // namespace
}  // namespace sextant::cli

int main(int argc, char** argv) {
  try {
    return sextant::cli::flushed(sextant::cli::run(argc, argv));
  } catch (const sextant::base::UserError& error) {
    sextant::cli::print_fault("error", error.what());
    return sextant::cli::kWrongInput;
  } catch (const sextant::base::OutsideError& error) {
    sextant::cli::print_fault("error", error.what());
    return sextant::cli::kOutsideFailed;
  } catch (const std::system_error& error) {  // fmt::print's, when standard output takes no more
    sextant::cli::print_fault("error", "standard output: cannot be written: " + error.code().message());
    return sextant::cli::kOutsideFailed;
  } catch (const std::exception& error) {
    sextant::cli::print_fault("internal error", error.what());
    return sextant::cli::kOutsideFailed;
  }
}
